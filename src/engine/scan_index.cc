#include "engine/scan_index.h"

#include <algorithm>
#include <mutex>
#include <unordered_map>

#include "base/clock.h"
#include "base/column_by_path.h"
#include "base/take_rows.h"
#include "engine/bucket_prune.h"
#include "key/key.h"
#include "scan/predicate_value.h"
#include "scan/scanner.h"
#include "table/snapshot.h"

namespace grebe {
namespace {

using scan::BoundAtom;
using scan::BoundNode;
using Kind = scan::PredicateNode::Kind;

// Keys beyond this many are pruned by the values of each column apart.
constexpr int64_t kExactKeysMax = 256;

// The keys asked for, once each, in the form of the table's own key types.
class AskedKeys {
 public:
  AskedKeys(const arrow::RecordBatch& keys, std::vector<std::string> names)
      : names_(std::move(names)) {
    for (const std::string& name : names_) columns_.push_back(keys.GetColumnByName(name));
    count_ = keys.num_rows();
  }

  // The types are known once the files are; then the keys are encoded, and become a predicate that
  // holds wherever a key may be.
  Result<std::shared_ptr<const scan::BoundPredicate>> Bind(
      std::vector<scan::PredicateColumn> columns) {
    const bool typed = std::all_of(columns.begin(), columns.end(), [](const auto& column) {
      return column.type != nullptr;
    });
    if (typed) ARROW_RETURN_NOT_OK(Encode(columns));
    ARROW_ASSIGN_OR_RAISE(BoundNode root, Tree(columns));
    return scan::BoundPredicate::Make(std::move(root), std::move(columns));
  }

  // The runs of rows that hold one of the keys.
  Status Judge(const arrow::RecordBatch& rows, std::vector<RowRange>* wanted) const {
    ARROW_ASSIGN_OR_RAISE(const auto keys, KeysOf(rows));
    for (size_t row = 0; row < keys.size(); ++row) {
      if (keys[row] < 0) continue;
      const auto at = static_cast<int64_t>(row);
      if (!wanted->empty() && wanted->back().end == at) {
        ++wanted->back().end;
      } else {
        wanted->push_back({at, at + 1});
      }
    }
    return Status::OK();
  }

  // Per row, the first of the equal keys asked for; -1: none.
  Result<std::vector<int64_t>> KeysOf(const arrow::RecordBatch& rows) const {
    key::EncodedKeys held;
    std::vector<bool> absent;
    ARROW_RETURN_NOT_OK(codec_->EncodeQuery(rows.columns(), &held, &absent));
    std::vector<int64_t> out(static_cast<size_t>(rows.num_rows()), -1);
    for (int64_t row = 0; row < rows.num_rows(); ++row) {
      if (absent[static_cast<size_t>(row)]) continue;
      const auto found = ordinals_.find(Text(held, row));
      if (found != ordinals_.end()) out[static_cast<size_t>(row)] = found->second;
    }
    return out;
  }

  // The first key equal to key i; -1: no row can have it.
  int64_t first_of(int64_t i) const { return first_of_[static_cast<size_t>(i)]; }
  int64_t count() const { return count_; }
  int64_t distinct_count() const { return static_cast<int64_t>(ordinals_.size()); }

 private:
  static std::string Text(const key::EncodedKeys& keys, int64_t row) {
    if (!keys.is_word) return std::string(keys.view(row));
    std::string out(9, '\0');
    out[0] = static_cast<char>(keys.is_null(row) ? 1 : 0);
    std::memcpy(out.data() + 1, &keys.words[static_cast<size_t>(row)], 8);
    return out;
  }

  Status Encode(const std::vector<scan::PredicateColumn>& columns) {
    std::vector<key::KeyType> types;
    for (const scan::PredicateColumn& column : columns) {
      auto type = key::KeyType::FromArrow(*column.type);
      if (!type.ok()) {
        return InvalidArgument("a column of this type cannot be a key", "column", column.path,
                               "type", column.type->ToString());
      }
      types.push_back(*type);
    }
    codec_ = std::make_shared<const key::KeyCodec>(std::move(types));
    key::EncodedKeys encoded;
    std::vector<bool> absent;
    ARROW_RETURN_NOT_OK(codec_->EncodeQuery(columns_, &encoded, &absent));
    ordinals_.clear();
    first_of_.assign(static_cast<size_t>(count_), -1);
    for (int64_t i = 0; i < count_; ++i) {
      if (absent[static_cast<size_t>(i)]) continue;
      first_of_[static_cast<size_t>(i)] =
          ordinals_.try_emplace(Text(encoded, i), i).first->second;
    }
    return Status::OK();
  }

  // One value of one key as an atom. A value that only compares with the column in some other way
  // (a double with an integer) says nothing here: the rows' own keys decide.
  static BoundAtom Atom(const arrow::Array& values, int64_t row, int column,
                        const std::shared_ptr<arrow::DataType>& type) {
    BoundAtom atom;
    atom.column = column;
    atom.op = BoundAtom::Op::kUntyped;
    if (type == nullptr) return atom;
    if (values.IsNull(row)) {
      atom.op = BoundAtom::Op::kIsNull;
      return atom;
    }
    const auto value = values.GetScalar(row);
    if (!value.ok()) return atom;
    const auto placed = scan::PlaceScalar(*value, type);
    if (!placed.ok() || placed->place != scan::PlacedValue::Place::kExact) return atom;
    if (scan::IsNaN(*placed->value)) {
      atom.op = BoundAtom::Op::kIsNaN;
    } else {
      atom.op = BoundAtom::Op::kEqual;
      atom.values = {placed->value};
    }
    return atom;
  }

  static BoundNode Join(Kind kind, std::vector<BoundNode> parts) {
    if (parts.size() == 1) return std::move(parts[0]);
    BoundNode out;
    out.kind = kind;
    out.children = std::move(parts);
    return out;
  }

  Result<BoundNode> Tree(const std::vector<scan::PredicateColumn>& columns) const {
    std::vector<BoundNode> keys;
    if (count_ > kExactKeysMax) {
      for (size_t c = 0; c < columns.size(); ++c) keys.push_back(AnyOf(c, columns[c].type));
      return Join(Kind::kAnd, std::move(keys));
    }
    for (int64_t i = 0; i < count_; ++i) {
      std::vector<BoundNode> parts;
      for (size_t c = 0; c < columns.size(); ++c) {
        BoundNode& part = parts.emplace_back();
        part.atom = Atom(*columns_[c], i, static_cast<int>(c), columns[c].type);
      }
      keys.push_back(Join(Kind::kAnd, std::move(parts)));
    }
    if (keys.empty()) {   // no key: no row
      BoundNode none;
      none.atom.op = BoundAtom::Op::kUnknown;
      none.atom.column = 0;
      return none;
    }
    return Join(Kind::kOr, std::move(keys));
  }

  // The values of one column over all keys, as one atom, with null and NaN beside it.
  BoundNode AnyOf(size_t column, const std::shared_ptr<arrow::DataType>& type) const {
    BoundAtom values;
    values.op = BoundAtom::Op::kIn;
    values.column = static_cast<int>(column);
    std::vector<BoundNode> parts;
    for (int64_t i = 0; i < count_; ++i) {
      BoundNode node;
      node.atom = Atom(*columns_[column], i, static_cast<int>(column), type);
      if (node.atom.op == BoundAtom::Op::kEqual) {
        values.values.push_back(node.atom.values[0]);
      } else if (node.atom.op == BoundAtom::Op::kUntyped) {
        return node;
      } else if (std::none_of(parts.begin(), parts.end(), [&](const BoundNode& part) {
                   return part.atom.op == node.atom.op;
                 })) {
        parts.push_back(std::move(node));
      }
    }
    if (!values.values.empty()) {
      scan::SortValues(&values.values);
      BoundNode node;
      node.atom = std::move(values);
      parts.push_back(std::move(node));
    }
    return Join(Kind::kOr, std::move(parts));
  }

  const std::vector<std::string> names_;
  arrow::ArrayVector columns_;
  int64_t count_ = 0;
  std::shared_ptr<const key::KeyCodec> codec_;
  std::unordered_map<std::string, int64_t> ordinals_;   // of encoded keys: the first asked
  std::vector<int64_t> first_of_;
};

class ScanIndex final : public Index {
 public:
  ScanIndex(table::Snapshot snapshot, std::shared_ptr<arrow::Schema> key_schema, Explain open_cost)
      : snapshot_(std::move(snapshot)), key_schema_(std::move(key_schema)),
        open_cost_(open_cost) {
    for (const auto& field : key_schema_->fields()) {
      names_.push_back(field->name());
      description_.key.push_back(field->name() + " " + field->type()->ToString());
    }
    description_.table_uri = store::DisplayUri(snapshot_.root);
    description_.table_kind = snapshot_.kind;
    description_.files = static_cast<int64_t>(snapshot_.files.size());
  }

  const IndexDescription& description() const override { return description_; }
  bool scans() const override { return true; }
  const std::shared_ptr<arrow::Schema>& key_schema() const override { return key_schema_; }

  Result<std::shared_ptr<arrow::Schema>> row_schema() override {
    ARROW_ASSIGN_OR_RAISE(auto scanner, scan::Scanner::Open(snapshot_, {}));
    return scanner->schema();
  }

  Result<GetResult> Get(const arrow::RecordBatch& keys, const GetOptions& options) override {
    if (options.offset < 0) return InvalidArgument("negative offset", "offset", options.offset);
    Stopwatch watch;
    GetResult result;
    ARROW_ASSIGN_OR_RAISE(auto asked, Ask(keys));
    scan::ScannerOptions scanner_options = OptionsFor(asked, options.columns);
    scanner_options.coalesce = options.coalesce;
    scanner_options.verify_crc = options.verify_crc;
    const bool one = keys.num_rows() == 1;
    if (one) {   // the scan itself can stop early
      scanner_options.offset = options.offset;
      scanner_options.limit = options.limit;
    }
    ARROW_ASSIGN_OR_RAISE(auto scanner, scan::Scanner::Open(snapshot_, scanner_options));
    std::vector<std::vector<int64_t>> rows_of(static_cast<size_t>(asked->count()));
    arrow::RecordBatchVector batches;
    int64_t row_count = 0;
    while (true) {
      ARROW_ASSIGN_OR_RAISE(auto batch, scanner->Next());
      if (batch == nullptr) break;
      ARROW_ASSIGN_OR_RAISE(const auto found, asked->KeysOf(*scanner->filter_rows()));
      for (const int64_t key : found) {
        if (key >= 0) rows_of[static_cast<size_t>(key)].push_back(row_count);
        ++row_count;
      }
      batches.push_back(std::move(batch));
    }
    std::vector<int64_t> positions;
    for (int64_t i = 0; i < asked->count(); ++i) {
      const int64_t first = asked->first_of(i);
      static const std::vector<int64_t> none;
      const auto& rows = first < 0 ? none : rows_of[static_cast<size_t>(first)];
      const auto total = static_cast<int64_t>(rows.size());
      const int64_t begin = one ? 0 : std::min(options.offset, total);
      const int64_t end = one || options.limit < 0 ? total
                                                   : std::min(total, begin + options.limit);
      positions.insert(positions.end(), rows.begin() + begin, rows.begin() + end);
      result.row_counts.push_back(end - begin);
    }
    ARROW_ASSIGN_OR_RAISE(auto all, EmptyRows(scanner->schema()));
    if (!batches.empty()) {
      ARROW_ASSIGN_OR_RAISE(all, arrow::ConcatenateRecordBatches(batches));
    }
    ARROW_ASSIGN_OR_RAISE(result.rows, TakeRows(all, positions));
    result.explain = ExplainOf(*scanner, result.rows->num_rows(), watch.TotalUs());
    return result;
  }

  Result<GetResult> GetRange(const KeyRange& range, const GetOptions& options) override {
    return NotSorted();
  }

  Result<CountResult> CountRange(const KeyRange& range) override { return NotSorted(); }

  Result<CountResult> Count(const arrow::RecordBatch& keys) override {
    Stopwatch watch;
    CountResult result;
    ARROW_ASSIGN_OR_RAISE(auto asked, Ask(keys));
    ARROW_ASSIGN_OR_RAISE(auto scanner,
                          scan::Scanner::Open(snapshot_, OptionsFor(asked, names_)));
    std::vector<int64_t> counts(static_cast<size_t>(asked->count()));
    while (true) {
      ARROW_ASSIGN_OR_RAISE(auto batch, scanner->Next());
      if (batch == nullptr) break;
      ARROW_ASSIGN_OR_RAISE(const auto found, asked->KeysOf(*scanner->filter_rows()));
      for (const int64_t key : found) {
        if (key >= 0) ++counts[static_cast<size_t>(key)];
      }
    }
    int64_t rows = 0;
    for (int64_t i = 0; i < asked->count(); ++i) {
      const int64_t first = asked->first_of(i);
      result.counts.push_back(first < 0 ? 0 : counts[static_cast<size_t>(first)]);
      rows += result.counts.back();
    }
    result.explain = ExplainOf(*scanner, rows, watch.TotalUs());
    return result;
  }

 private:
  static Status NotSorted() {
    return InvalidArgument(
        "a range in key order needs a sorted index: 'grebe index create --sorted' makes one; "
        "'grebe scan --where' gives the rows in the files' order");
  }

  Result<std::shared_ptr<AskedKeys>> Ask(const arrow::RecordBatch& keys) const {
    for (const std::string& name : names_) {
      if (keys.GetColumnByName(name) == nullptr) {
        return InvalidArgument("a key column is missing", "column", name);
      }
    }
    return std::make_shared<AskedKeys>(keys, names_);
  }

  scan::ScannerOptions OptionsFor(const std::shared_ptr<AskedKeys>& asked,
                                  const std::vector<std::string>& columns) const {
    scan::ScannerOptions options;
    options.columns = columns;
    options.keep_filter_rows = true;
    options.may_match_layout = engine::MayMatchBucket;
    scan::Filter& filter = options.filter.emplace();
    filter.columns = names_;
    filter.bind = [asked](std::vector<scan::PredicateColumn> bound) {
      return asked->Bind(std::move(bound));
    };
    filter.judge = [asked](const arrow::RecordBatch& rows, std::vector<RowRange>* wanted) {
      return asked->Judge(rows, wanted);
    };
    return options;
  }

  Explain ExplainOf(const scan::Scanner& scanner, int64_t rows, int64_t total_us) {
    const scan::ScanCost cost = scanner.cost();
    std::lock_guard lock(mutex_);
    Explain out = std::exchange(open_cost_, {});   // told once, in the first call's record
    out.waves += cost.waves;
    out.requests += cost.requests;
    out.bytes_read += cost.bytes_read;
    out.gap_bytes += cost.gap_bytes;
    out.pages = cost.pages_read;
    out.dictionary_pages = cost.dictionary_pages;
    out.files = cost.files_read;
    out.rows = rows;
    out.cache_hits = cost.cache_hits;
    out.verified_rows = cost.rows_filtered;
    out.rejected_rows = cost.rows_filtered - cost.rows;
    out.stage_us.plan = cost.stage_us.plan;
    out.stage_us.fetch = cost.stage_us.fetch;
    out.stage_us.decode = cost.stage_us.decode;
    out.stage_us.total = total_us + out.stage_us.open;
    return out;
  }

  const table::Snapshot snapshot_;
  const std::shared_ptr<arrow::Schema> key_schema_;
  std::vector<std::string> names_;
  IndexDescription description_;
  std::mutex mutex_;
  Explain open_cost_;
};

// The key columns' types, from the first file that has them (types that other files widen are
// compared by value all the same).
Result<std::shared_ptr<arrow::Schema>> KeySchema(const table::Snapshot& snapshot,
                                                 const std::vector<std::string>& key,
                                                 Explain* cost) {
  if (snapshot.files.empty()) return NotFound("the table has no Parquet files");
  scan::ScannerOptions options;
  options.columns = key;
  table::Snapshot some = snapshot;
  some.files.resize(1);
  auto scanner = scan::Scanner::Open(some, options);
  if (!scanner.ok() && snapshot.files.size() > 1 &&
      IsKind(scanner.status(), ErrorKind::kInvalidArgument)) {
    scanner = scan::Scanner::Open(snapshot, options);
  }
  ARROW_RETURN_NOT_OK(scanner.status());
  const scan::ScanCost read = (*scanner)->cost();
  cost->waves += read.waves;
  cost->requests += read.requests;
  cost->bytes_read += read.bytes_read;
  ARROW_ASSIGN_OR_RAISE(auto empty, EmptyRows((*scanner)->schema()));
  arrow::FieldVector fields;
  for (const std::string& name : key) {
    ARROW_ASSIGN_OR_RAISE(auto column, ColumnByPath(*empty, name));
    auto type = key::KeyType::FromArrow(*column->type());
    if (!type.ok()) {
      return InvalidArgument("a column of this type cannot be a key", "column", name, "type",
                             column->type()->ToString());
    }
    fields.push_back(arrow::field(name, column->type()));
  }
  return arrow::schema(std::move(fields));
}

}  // namespace

Result<std::shared_ptr<Index>> engine::OpenScanIndexAt(const TableContext& context,
                                                       const OpenOptions& options) {
  Stopwatch watch;
  ARROW_ASSIGN_OR_RAISE(auto snapshot, table::ReadSnapshot(context.table));
  Explain open_cost;
  ARROW_ASSIGN_OR_RAISE(auto key_schema, KeySchema(snapshot, options.key, &open_cost));
  open_cost.stage_us.open = watch.TotalUs();
  return std::make_shared<ScanIndex>(std::move(snapshot), std::move(key_schema), open_cost);
}

}  // namespace grebe
