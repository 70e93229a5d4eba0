#include "grebe/explain.h"

#include <nlohmann/json.hpp>
#include <sstream>

namespace grebe {

std::string Explain::ToJson() const {
  return nlohmann::ordered_json({{"waves", waves},
                                 {"requests", requests},
                                 {"bytes_read", bytes_read},
                                 {"gap_bytes", gap_bytes},
                                 {"pages", pages},
                                 {"dictionary_pages", dictionary_pages},
                                 {"files", files},
                                 {"fragments_probed", fragments_probed},
                                 {"postings", postings},
                                 {"rows", rows},
                                 {"cache_hits", cache_hits},
                                 {"verified_rows", verified_rows},
                                 {"rejected_rows", rejected_rows},
                                 {"stage_us",
                                  {{"open", stage_us.open},
                                   {"probe", stage_us.probe},
                                   {"plan", stage_us.plan},
                                   {"fetch", stage_us.fetch},
                                   {"decode", stage_us.decode},
                                   {"total", stage_us.total}}}})
      .dump();
}

std::string Explain::ToText() const {
  std::ostringstream out;
  out << "waves " << waves << "  requests " << requests << "  bytes_read " << bytes_read
      << "  gap_bytes " << gap_bytes << "\n"
      << "pages " << pages << "  dictionary_pages " << dictionary_pages << "  files " << files
      << "  cache_hits " << cache_hits << "\n"
      << "fragments_probed " << fragments_probed << "  postings " << postings << "  rows " << rows
      << "  verified_rows " << verified_rows << "  rejected_rows " << rejected_rows << "\n"
      << "us: open " << stage_us.open << "  probe " << stage_us.probe << "  plan " << stage_us.plan
      << "  fetch " << stage_us.fetch << "  decode " << stage_us.decode << "  total "
      << stage_us.total << "\n";
  return out.str();
}

}  // namespace grebe
