// grebe completion bash|zsh|fish: the words a shell may offer, taken from the commands themselves.
#include "cli/command.h"

namespace grebe::cli {
namespace {

std::string JoinWords(const std::vector<std::string>& words) {
  std::string joined;
  for (const std::string& word : words) joined += (joined.empty() ? "" : " ") + word;
  return joined;
}

// "index create" -> its subcommands and options, for every command below app.
void Collect(const CLI::App* app, const std::string& path,
             std::vector<std::pair<std::string, std::string>>* out) {
  std::vector<std::string> words;
  for (const CLI::App* sub : app->get_subcommands({})) words.push_back(sub->get_name());
  for (const CLI::Option* option : app->get_options()) {
    for (const std::string& name : option->get_lnames()) words.push_back("--" + name);
  }
  out->emplace_back(path, JoinWords(words));
  for (const CLI::App* sub : app->get_subcommands({})) {
    Collect(sub, path.empty() ? sub->get_name() : path + " " + sub->get_name(), out);
  }
}

// Bash: the words that are no options, up to the cursor, are the command's path.
std::string BashScript(const std::vector<std::pair<std::string, std::string>>& commands) {
  std::string script =
      "_grebe() {\n"
      "  local word path=\"\" words=\"\"\n"
      "  for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n"
      "    case \"$path $word\" in\n";
  for (const auto& [path, words] : commands) {
    if (!path.empty()) {
      const size_t space = path.rfind(' ');
      const std::string parent = space == std::string::npos ? "" : path.substr(0, space);
      const std::string last = space == std::string::npos ? path : path.substr(space + 1);
      script += "      \"" + parent + " " + last + "\") path=\"" + path + "\" ;;\n";
    }
  }
  script += "    esac\n  done\n  case \"$path\" in\n";
  for (const auto& [path, words] : commands) {
    script += "    \"" + path + "\") words=\"" + words + "\" ;;\n";
  }
  script +=
      "  esac\n"
      "  COMPREPLY=($(compgen -W \"$words\" -- \"${COMP_WORDS[COMP_CWORD]}\"))\n"
      "}\n"
      "complete -o default -F _grebe grebe\n";
  return script;
}

std::string FishScript(const std::vector<std::pair<std::string, std::string>>& commands) {
  std::string script = "complete -c grebe -e\n";
  for (const auto& [path, words] : commands) {
    const std::string condition = path.empty() ? "__fish_use_subcommand"
                                               : "__fish_seen_subcommand_from " +
                                                     path.substr(path.rfind(' ') + 1);
    script += "complete -c grebe -n '" + condition + "' -a '" + words + "'\n";
  }
  return script;
}

}  // namespace

void AddCompletionCommand(CLI::App* app, Common* common) {
  static std::string shell;
  CLI::App* command = app->add_subcommand("completion", "A completion script for a shell");
  command->add_option("SHELL", shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  OnCommand(command, common, [=] {
    std::vector<std::pair<std::string, std::string>> commands;
    Collect(app, "", &commands);
    if (shell == "fish") return WriteOutput(*common, FishScript(commands));
    const std::string zsh = "autoload -U +X bashcompinit && bashcompinit\n";
    return WriteOutput(*common, (shell == "zsh" ? zsh : "") + BashScript(commands));
  });
}

}  // namespace grebe::cli
