// Scan: the room scan over a table's snapshot, in the public terms.
#include "grebe/scan.h"

#include <nlohmann/json.hpp>
#include <sstream>

#include "base/clock.h"
#include "engine/bucket_prune.h"
#include "engine/engine.h"
#include "engine/known_files.h"
#include "engine/table_context.h"
#include "scan/scanner.h"
#include "table/snapshot.h"

namespace grebe {
namespace {

class ScanImpl final : public Scan {
 public:
  ScanImpl(std::unique_ptr<scan::Scanner> scanner, int64_t open_us)
      : scanner_(std::move(scanner)), open_us_(open_us) {}

  const std::shared_ptr<arrow::Schema>& schema() const override { return scanner_->schema(); }

  Result<std::shared_ptr<arrow::RecordBatch>> Next() override {
    ARROW_ASSIGN_OR_RAISE(auto batch, scanner_->Next());
    for (size_t i = skipped_.size(); i < scanner_->bad_files().size(); ++i) {
      skipped_.push_back({scanner_->bad_files()[i].path, scanner_->bad_files()[i].reason});
    }
    return batch;
  }

  ScanExplain explain() const override {
    const scan::ScanCost cost = scanner_->cost();
    ScanExplain out;
    out.files_total = cost.files_total;
    out.files_read = cost.files_read;
    out.row_groups_total = cost.row_groups_total;
    out.row_groups_read = cost.row_groups_read;
    out.pages_total = cost.pages_total;
    out.pages_read = cost.pages_read;
    out.bytes_read = cost.bytes_read;
    out.rows = cost.rows;
    out.waves = cost.waves;
    out.requests = cost.requests;
    out.gap_bytes = cost.gap_bytes;
    out.dictionary_pages = cost.dictionary_pages;
    out.footers_read = cost.footers_read;
    out.bloom_filters_read = cost.bloom_filters_read;
    out.rows_filtered = cost.rows_filtered;
    out.cache_hits = cost.cache_hits;
    out.stage_us = {open_us_, cost.stage_us.plan, cost.stage_us.fetch, cost.stage_us.decode,
                    cost.stage_us.total + open_us_};
    return out;
  }

  const std::vector<SkippedFile>& skipped() const override { return skipped_; }

 private:
  const std::unique_ptr<scan::Scanner> scanner_;
  const int64_t open_us_;
  std::vector<SkippedFile> skipped_;
};

}  // namespace

Result<std::unique_ptr<Scan>> Scan::Open(const IndexRef& ref, const ScanOptions& options) {
  ARROW_ASSIGN_OR_RAISE(engine::TableContext context, engine::ResolveTable(ref));
  return engine::OpenScanAt(context, options);
}

Result<std::unique_ptr<Scan>> engine::OpenScanAt(const TableContext& context,
                                                 const ScanOptions& options) {
  Stopwatch watch;
  scan::ScannerOptions scanner_options;
  if (!options.where.empty()) {
    ARROW_ASSIGN_OR_RAISE(auto predicate, scan::Predicate::Parse(options.where));
    scanner_options.filter = scan::FilterOf(std::move(predicate));
  }
  scanner_options.columns = options.columns;
  scanner_options.offset = options.offset;
  scanner_options.limit = options.limit;
  scanner_options.skip_bad_files = options.skip_bad_files;
  scanner_options.coalesce = options.coalesce;
  scanner_options.verify_crc = options.verify_crc;
  scanner_options.window_bytes_max = options.window_bytes_max;
  scanner_options.stop = options.stop;
  scanner_options.may_match_layout = MayMatchBucket;
  ARROW_ASSIGN_OR_RAISE(auto snapshot, table::ReadSnapshot(context.table));
  const auto known = KnownFiles::Load(context, snapshot);
  scanner_options.known = [known](const store::Object& file) { return known->Find(file); };
  const int64_t open_us = watch.TotalUs();
  ARROW_ASSIGN_OR_RAISE(auto scanner, scan::Scanner::Open(std::move(snapshot),
                                                          std::move(scanner_options)));
  return std::make_unique<ScanImpl>(std::move(scanner), open_us);
}

std::string ScanExplain::ToJson() const {
  return nlohmann::ordered_json({{"files_total", files_total},
                                 {"files_read", files_read},
                                 {"row_groups_total", row_groups_total},
                                 {"row_groups_read", row_groups_read},
                                 {"pages_total", pages_total},
                                 {"pages_read", pages_read},
                                 {"bytes_read", bytes_read},
                                 {"rows", rows},
                                 {"waves", waves},
                                 {"requests", requests},
                                 {"gap_bytes", gap_bytes},
                                 {"dictionary_pages", dictionary_pages},
                                 {"footers_read", footers_read},
                                 {"bloom_filters_read", bloom_filters_read},
                                 {"rows_filtered", rows_filtered},
                                 {"cache_hits", cache_hits},
                                 {"stage_us",
                                  {{"open", stage_us.open},
                                   {"plan", stage_us.plan},
                                   {"fetch", stage_us.fetch},
                                   {"decode", stage_us.decode},
                                   {"total", stage_us.total}}}})
      .dump();
}

std::string ScanExplain::ToText() const {
  std::ostringstream out;
  out << "files " << files_read << " of " << files_total << "  row_groups " << row_groups_read
      << " of " << row_groups_total << "  pages " << pages_read << " of " << pages_total << "\n"
      << "waves " << waves << "  requests " << requests << "  bytes_read " << bytes_read
      << "  gap_bytes " << gap_bytes << "\n"
      << "footers_read " << footers_read << "  bloom_filters_read " << bloom_filters_read
      << "  dictionary_pages " << dictionary_pages << "  cache_hits " << cache_hits << "\n"
      << "rows " << rows << "  rows_filtered " << rows_filtered << "\n"
      << "us: open " << stage_us.open << "  plan " << stage_us.plan << "  fetch " << stage_us.fetch
      << "  decode " << stage_us.decode << "  total " << stage_us.total << "\n";
  return out.str();
}

}  // namespace grebe
