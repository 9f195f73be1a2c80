#include "launchers/pdsh_words.h"

#include "base/text.h"
#include "codec/nodelist.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace lockstep::launchers {
namespace {

constexpr std::size_t kMostHosts = 4096;

Failure refuse(const std::string& what) {
  return fail(Errc::invalid_input, what, "pdsh -w HOSTS [-S] [-N] [-l USER] COMMAND is understood");
}

// Lists of hosts collected while reading.
struct Lists {
  std::string take;   // -w
  std::string leave;  // -x
};

Status take_flag(char letter, PdshWords& pdsh) {
  switch (letter) {
    case 'S':
      pdsh.largest_code = true;
      return {};
    case 'N':
      pdsh.labels = false;
      return {};
    case 'V':
    case 'h':
      pdsh.asks_version = true;
      return {};
    case 'k':
      pdsh.fail_fast = true;
      return {};
    case 'b':
      return {};  // about ^C, which Lockstep handles
    default:
      return refuse(fmt::format("option -{} is not known", letter));
  }
}

Status take_value(char letter, const std::string& value, PdshWords& pdsh, Lists& lists) {
  const auto add = [&value](std::string& list) {
    if (!list.empty()) list += ',';
    list += value;
  };
  switch (letter) {
    case 'w':
      add(lists.take);
      return {};
    case 'x':
      add(lists.leave);
      return {};
    case 'l':
      pdsh.user = value;
      return {};
    case 'f':
    case 't':
      return {};  // parallelism and connect timeout, which are not limited here
    case 'R':
      if (value == "ssh" || value == "exec") return {};
      return refuse(fmt::format("-R {}: hosts are reached with ssh", printable(value, 40)));
    default:
      return refuse(fmt::format("option -{} is not known", letter));
  }
}

Result<std::vector<std::string>> expand(const std::string& list, char option) {
  auto names = codec::expand_nodelist(list);
  if (!names) return Failure(std::move(names).error().within(fmt::format("-{}", option)));
  return names;
}

Status choose_hosts(const Lists& lists, PdshWords& pdsh) {
  if (lists.take.empty()) return refuse("no host is given");
  LOCKSTEP_TRY_ASSIGN(std::vector<std::string> names, expand(lists.take, 'w'));
  std::vector<std::string> left;
  if (!lists.leave.empty()) {
    LOCKSTEP_TRY_ASSIGN(left, expand(lists.leave, 'x'));
  }
  for (std::string& name : names) {
    const auto known = [&name](const std::vector<std::string>& list) {
      return std::find(list.begin(), list.end(), name) != list.end();
    };
    // Keep each host once, in the order of -w.
    if (!known(left) && !known(pdsh.hosts)) pdsh.hosts.push_back(std::move(name));
  }
  if (pdsh.hosts.empty()) return refuse("no host is left");
  if (pdsh.hosts.size() > kMostHosts) return refuse("there are more than 4096 hosts");
  return {};
}

// Returns the host in "user@host", as ssh splits it.
std::string_view host_of(std::string_view name) {
  const std::size_t at = name.rfind('@');
  return at == std::string_view::npos ? name : name.substr(at + 1);
}

}  // namespace

// Reads the words as getopt() does: the command begins at the first word that is not an option.
Result<PdshWords> parse_pdsh(std::span<const std::string> words) {
  PdshWords pdsh;
  Lists lists;
  std::size_t at = 0;
  while (at < words.size() && words[at].size() > 1 && words[at][0] == '-') {
    const std::string& word = words[at++];
    if (word == "--") break;
    for (std::size_t i = 1; i < word.size(); ++i) {
      constexpr std::string_view kWithValue = "wxlftRu";
      if (kWithValue.find(word[i]) == std::string_view::npos) {
        LOCKSTEP_TRY(take_flag(word[i], pdsh));
        continue;
      }
      std::string value = word.substr(i + 1);
      if (value.empty() && at >= words.size())
        return refuse(fmt::format("-{} needs a value", word[i]));
      if (value.empty()) value = words[at++];
      LOCKSTEP_TRY(take_value(word[i], value, pdsh, lists));
      break;
    }
  }
  if (pdsh.asks_version) return pdsh;
  LOCKSTEP_TRY(choose_hosts(lists, pdsh));
  if (at == words.size()) return refuse("no command is given");
  // pdsh joins the words with spaces and leaves quoting to the remote shell.
  pdsh.command = join(words.subspan(at), " ");
  return pdsh;
}

std::string pdsh_command(const PdshWords& pdsh, std::size_t host, std::string_view own_user) {
  std::string out;
  const std::string& text = pdsh.command;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char next = text[i] == '%' && i + 1 < text.size() ? text[i + 1] : '\0';
    // %n is the host's index, which DeepSpeed uses as node rank.
    if (next == 'n') {
      out += std::to_string(host);
    } else if (next == 'h') {
      out += host_of(pdsh.hosts[host]);
    } else if (next == 'u') {
      out += pdsh.user ? std::string_view(*pdsh.user) : own_user;
    } else if (next == '%') {
      out += '%';
    } else {
      out += text[i];
      continue;
    }
    ++i;
  }
  return out;
}

// Reads options written with or without a space behind the letter.
PdshWay pdsh_way(std::string_view ssh_args) {
  std::string text(ssh_args);
  replace_all(text, "\t", " ");
  std::vector<std::string> words = split(text, ' ');
  std::erase(words, "");
  PdshWay way;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string option = words[i].substr(0, 2);
    if (option != "-p" && option != "-i" && option != "-J") {
      way.left.push_back(words[i]);
      continue;
    }
    const bool apart = words[i].size() == 2;
    const std::string value = !apart ? words[i].substr(2) : i + 1 < words.size() ? words[++i] : "";
    const auto port = parse_int(value);
    if (option == "-i" && !value.empty()) {
      way.key = value;
    } else if (option == "-J" && !value.empty()) {
      way.jump = value;
    } else if (option == "-p" && port && *port > 0 && *port < 65536) {
      way.port = static_cast<int>(*port);
    } else {
      way.left.push_back(apart ? fmt::format("{} {}", option, value) : words[i]);
    }
  }
  return way;
}

// Slurm chooses the order of srun's tasks, which may differ from -w. So each node looks up its own
// command by its name.
std::vector<std::string> pdsh_over_srun(const PdshWords& pdsh, std::string_view own_user) {
  std::string choice = "case \"$SLURMD_NODENAME\" in\n";
  std::vector<std::string> names;
  for (std::size_t i = 0; i < pdsh.hosts.size(); ++i) {
    names.emplace_back(host_of(pdsh.hosts[i]));
    choice += fmt::format("{}) command={} ;;\n", shell_quote(names.back()),
                          shell_quote(pdsh_command(pdsh, i, own_user)));
  }
  choice +=
      // A node name in Slurm may differ from the host name in the list.
      "*) echo \"pdsh: node $SLURMD_NODENAME was not asked for\" >&2; exit 255 ;;\nesac\n"
      "exec \"${SHELL:-/bin/sh}\" -c \"$command\"\n";
  // --overlap: the step that runs the launcher may hold all resources of the allocation.
  const std::string count = std::to_string(names.size());
  return {"srun",
          "--overlap",
          "--nodes=" + count,
          "--ntasks=" + count,
          "--ntasks-per-node=1",
          fmt::format("--kill-on-bad-exit={:d}", pdsh.fail_fast),
          "--unbuffered",
          "--nodelist=" + join(names, ","),
          "/bin/sh",
          "-c",
          choice};
}

}  // namespace lockstep::launchers
