#include "base/failpoint.h"

#include <csignal>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

namespace grebe {
namespace {

struct Armed {
  bool kill = false;
  int countdown = 1;
};

struct Table {
  std::mutex mutex;
  std::map<std::string, Armed, std::less<>> armed;
};

// "a=kill,b=error@2" -> table. Unknown actions are ignored: tests check that the name was hit.
Table* Parse() {
  auto* table = new Table;
  const char* text = std::getenv("GREBE_FAILPOINTS");
  std::string_view rest = text == nullptr ? "" : text;
  while (!rest.empty()) {
    const size_t comma = rest.find(',');
    const std::string_view item = rest.substr(0, comma);
    rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
    const size_t equals = item.find('=');
    if (equals == std::string_view::npos) continue;
    Armed armed;
    std::string_view action = item.substr(equals + 1);
    const size_t at = action.find('@');
    if (at != std::string_view::npos) {
      armed.countdown = std::atoi(std::string(action.substr(at + 1)).c_str());
      action = action.substr(0, at);
    }
    armed.kill = action == "kill";
    table->armed.emplace(std::string(item.substr(0, equals)), armed);
  }
  return table;
}

Table& Failpoints() {
  static Table* const table = Parse();
  return *table;
}

}  // namespace

bool FailpointsArmed() {
  static const bool armed = !Failpoints().armed.empty();
  return armed;
}

Status FailpointHit(const char* name) {
  Table& table = Failpoints();
  std::lock_guard lock(table.mutex);
  const auto found = table.armed.find(std::string_view(name));
  if (found == table.armed.end() || --found->second.countdown != 0) return Status::OK();
  if (found->second.kill) std::raise(SIGKILL);
  return Transient("failpoint", "name", name);
}

}  // namespace grebe
