#include "ssh/boot_command.h"

#include "base/error.h"
#include "base/text.h"

#include <fmt/core.h>

#include <array>
#include <vector>

namespace lockstep::ssh {
namespace {

constexpr std::string_view kAbsent = "lockstep-absent ";
constexpr std::string_view kPushed = "lockstep-pushed ";
constexpr std::array<std::string_view, 6> kPushWords = {"done",    "no-exec",  "cut",
                                                        "corrupt", "no-space", "no-home"};

// Returns the words of the last line beginning with the mark. A login shell may print its own text
// before.
std::optional<std::vector<std::string>> words_behind(std::string_view mark,
                                                     std::string_view output) {
  std::optional<std::vector<std::string>> words;
  for (const std::string& line : split(output, '\n')) {
    const std::string_view text = strip(line);
    if (text.starts_with(mark)) words = split(text.substr(mark.size()), ' ');
  }
  return words;
}

std::string in_sh(std::string_view script) {
  // The command passes through shells that treat these characters differently.
  LOCKSTEP_CHECK(script.find_first_of("'\\!\n") == std::string_view::npos);
  return fmt::format("exec sh -c '{}'", script);
}

}  // namespace

std::string remote_path(const BinaryName& name) {
  return fmt::format(".cache/lockstep/bin/lockstep-{}-{}", name.version, name.id);
}

std::string boot_command(const BinaryName& name, Commands commands) {
  return in_sh(
      // wc fails if no part is left, hence the "0". Exit code 71 is only a marker; parse_absent()
      // reads the line.
      fmt::format(R"(f=$HOME/{}; test -x "$f" && exec "$f" link{}; echo; )"
                  R"(echo {}$(uname -s) $(uname -m) $(wc -c 2>/dev/null <"$f.part{}" || echo 0); )"
                  R"(exit 71)",
                  remote_path(name), commands == Commands::may_outlive_us ? " --may-outlive" : "",
                  kAbsent, name.client));
}

std::optional<Absent> parse_absent(std::string_view output) {
  const auto words = words_behind(kAbsent, output);
  if (!words || words->size() < 3) return std::nullopt;
  const auto partial = parse_int((*words)[2]);
  return Absent{(*words)[0], (*words)[1],
                partial && *partial > 0 ? static_cast<std::uint64_t>(*partial) : 0};
}

std::string push_command(const PushFacts& facts) {
  const auto say = [](Pushed what) {
    return fmt::format("echo; echo {}{}; exit", kPushed,
                       kPushWords[static_cast<std::size_t>(what)]);
  };
  // The part stays only after `cut`: then a later push can resume. A part that fails gzip or the
  // digest is removed. If gzip accepts the part but unpacking failed, the disk is full.
  return in_sh(fmt::format(
      R"(umask 077; f=$HOME/{path}; p=$f.part{client}; t=$f.new{client}; )"
      R"(mkdir -p "$HOME/.cache/lockstep/bin" || {{ {no_home}; }}; )"
      R"(cat {into}"$p" || {{ rm -f "$p"; {no_space}; }}; )"
      R"(test $(wc -c <"$p") -eq {size} || {{ {cut}; }}; )"
      R"({unpack} <"$p" >"$t" || {{ rm -f "$t"; {check} <"$p" && {{ rm -f "$p"; {no_space}; }}; )"
      R"(rm -f "$p"; {corrupt}; }}; )"
      R"(s=$(sha256sum <"$t" 2>/dev/null || shasum -a 256 <"$t" 2>/dev/null); )"
      R"(case $s in {sha256}*) ;; *) rm -f "$t" "$p"; {corrupt};; esac; )"
      // mv replaces the binary whole, so no client can run a half-written binary meanwhile.
      R"(chmod 700 "$t" && mv -f "$t" "$f" && rm -f "$p"; )"
      R"(test -x "$f" || {{ rm -f "$f"; {no_exec}; }}; {done})",
      fmt::arg("path", remote_path(facts.name)), fmt::arg("client", facts.name.client),
      fmt::arg("no_home", say(Pushed::no_home)), fmt::arg("into", facts.resumes ? ">>" : ">"),
      fmt::arg("no_space", say(Pushed::no_space)), fmt::arg("size", facts.size),
      fmt::arg("cut", say(Pushed::cut)), fmt::arg("unpack", facts.compressed ? "gzip -dc" : "cat"),
      fmt::arg("check", facts.compressed ? "gzip -t" : "true"), fmt::arg("sha256", facts.sha256),
      fmt::arg("corrupt", say(Pushed::corrupt)), fmt::arg("no_exec", say(Pushed::no_exec)),
      fmt::arg("done", say(Pushed::done))));
}

std::optional<Pushed> parse_pushed(std::string_view output) {
  const auto words = words_behind(kPushed, output);
  if (!words) return std::nullopt;
  for (std::size_t i = 0; i < kPushWords.size(); ++i)
    if (words->front() == kPushWords[i]) return static_cast<Pushed>(i);
  return std::nullopt;
}

}  // namespace lockstep::ssh
