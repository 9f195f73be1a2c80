#include "setup/spec.h"

#include "base/shell_words.h"
#include "base/text.h"
#include "base/utf8.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

namespace lockstep::setup {
namespace {

using Kind = Spec::Kind;
using Words = std::vector<std::string>;

constexpr std::string_view kThereIs =
    "there is pip:./, pip:NAME, reqs:FILE, conda:FILE, git:URL@REF, local:DIR, wheel:FILE, and "
    "plain names of packages";

Failure refuse(std::string_view text, std::string_view why, std::string hint = {}) {
  return fail(Errc::invalid_input, fmt::format("'{}' {}", printable(text), why), std::move(hint));
}

// Returns "pip" of "pip:./". nullopt: a plain name. A requirement such as "x @ https://..." has no
// prefix.
std::optional<std::string_view> prefix_of(std::string_view text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos || colon == 0) return std::nullopt;
  const std::string_view prefix = text.substr(0, colon);
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '+' ||
           c == '-' || c == '_' || c == '.';
  };
  if (!std::all_of(prefix.begin(), prefix.end(), fits)) return std::nullopt;
  return prefix;
}

bool is_path(std::string_view word) {
  return word == "." || word == ".." || word == "~" || word.starts_with("./") ||
         word.starts_with("../") || word.starts_with('/') || word.starts_with("~/") ||
         word.starts_with(".[") || word.starts_with("..[");
}

// Only the project's own files are on the hosts. A relative path out of the project leads nowhere
// there.
bool leaves_the_project(std::string_view path) {
  if (path.starts_with('/') || path.starts_with('~')) return false;
  int depth = 0;
  for (const std::string& part : split(path, '/')) {
    if (part == "..") --depth;
    if (part != ".." && part != "." && !part.empty()) ++depth;
    if (depth < 0) return true;
  }
  return false;
}

Result<Spec> checked_path(Spec spec) {
  if (leaves_the_project(spec.subject))
    return refuse(spec.text, "leaves the project, and nothing else of this machine is on the hosts",
                  "give --project DIR with a folder that contains the path");
  return spec;
}

Result<Spec> parse_pip(Spec spec, Words words) {
  if (words.empty()) return refuse(spec.text, "names nothing to install");
  const bool editable = words[0] == "-e" || words[0] == "--editable";
  const std::size_t at = editable ? 1 : 0;
  if (at >= words.size() || !is_path(words[at])) {
    spec.args = std::move(words);
    return spec;
  }
  spec.kind = Kind::tree;
  spec.editable = editable;
  spec.subject = words[at];
  const std::size_t bracket = spec.subject.rfind('[');
  if (spec.subject.ends_with(']') && bracket != std::string::npos) {
    spec.extras = spec.subject.substr(bracket);
    spec.subject.resize(bracket);
  }
  spec.args.assign(words.begin() + static_cast<std::ptrdiff_t>(at) + 1, words.end());
  return checked_path(std::move(spec));
}

// Takes URL@REF apart at the last '@' of the path. git@host:path is ssh's short form of a URL.
Result<Spec> parse_git(Spec spec) {
  std::string url = spec.subject;
  if (url.starts_with("git+")) url.erase(0, 4);
  if (const std::size_t hash = url.find('#'); hash != std::string::npos) {
    spec.extras = url.substr(hash);
    url.resize(hash);
  }
  // Without a scheme this may be a local path or ssh's short form.
  const std::size_t scheme = url.find("://");
  const std::size_t colon = url.find(':');
  std::size_t path = 0;
  if (scheme != std::string::npos) {
    path = url.find('/', scheme + 3);
    if (path == std::string::npos || path + 1 == url.size())
      return refuse(spec.text, "names no repository", "write git:https://host/path@ref");
  } else if (url.starts_with('/')) {
    url = "file://" + url;
    path = 7;
  } else if (colon != std::string::npos && colon > 0 && colon + 1 < url.size()) {
    const std::string rest = url.substr(colon + 1);
    url = "ssh://" + url.substr(0, colon);
    path = url.size();
    url += (rest.starts_with('/') ? "" : "/") + rest;
  } else {
    return refuse(spec.text, "is not the URL of a repository", "write git:https://host/path@ref");
  }
  const std::size_t at = url.rfind('@');
  if (at != std::string::npos && at > path) {
    spec.ref = url.substr(at + 1);
    url.resize(at);
    // git would take such a ref for an option.
    if (spec.ref.empty() || spec.ref.starts_with('-'))
      return refuse(spec.text, "has no ref behind the '@'");
  }
  spec.subject = std::move(url);
  return spec;
}

Result<Spec> parse_file(Spec spec, Words words, Kind kind) {
  spec.kind = kind;
  if (words.empty() || words[0].empty() || words[0].starts_with('-'))
    return refuse(spec.text, kind == Kind::git ? "names no repository" : "names no file or folder");
  spec.subject = std::move(words[0]);
  spec.args.assign(words.begin() + 1, words.end());
  if (kind == Kind::git) return parse_git(std::move(spec));
  if (kind == Kind::local && !spec.args.empty())
    return refuse(spec.text, "has words behind the folder", "put a path with spaces into quotes");
  if (kind == Kind::wheel && !spec.subject.ends_with(".whl"))
    return refuse(spec.text, "is not a wheel: the name must end with .whl");
  if (kind == Kind::wheel) return spec;  // the wheel is sent by itself, so it may lie anywhere
  return checked_path(std::move(spec));
}

constexpr std::array<std::pair<std::string_view, Kind>, 5> kFiles = {{{"reqs", Kind::requirements},
                                                                      {"conda", Kind::conda},
                                                                      {"git", Kind::git},
                                                                      {"local", Kind::local},
                                                                      {"wheel", Kind::wheel}}};

}  // namespace

Result<std::vector<std::string>> split_words(std::string_view text) {
  auto words = shell_words(text);
  if (!words) return refuse(text, "ends inside of quotes");
  return std::move(*words);
}

Result<Spec> parse_spec(std::string_view given) {
  const std::string_view text = strip(given);
  if (text.empty()) return fail(Errc::invalid_input, "a spec is empty", std::string(kThereIs));
  if (text.size() > kLongestSpec || text.find('\0') != std::string_view::npos)
    return refuse(text, "is too long, or contains a NUL");
  if (!is_utf8(text))
    return refuse(text, "is not UTF-8");  // the spec travels to hosts as JSON, which is UTF-8
  Spec spec{.text = std::string(text)};
  const auto prefix = prefix_of(text);
  LOCKSTEP_TRY_ASSIGN(Words words, split_words(prefix ? text.substr(prefix->size() + 1) : text));
  if (prefix == "pip") return parse_pip(std::move(spec), std::move(words));
  for (const auto& [name, kind] : kFiles)
    if (prefix == name) return parse_file(std::move(spec), std::move(words), kind);
  if (prefix) {
    // A URL has a colon as well: explain how to write one.
    const bool web = text.substr(prefix->size()).starts_with("://");
    return refuse(text, fmt::format("has the unknown prefix {}:", printable(*prefix)),
                  (web ? "write pip:URL for an archive, git:URL@REF for a repository; " : "") +
                      std::string(kThereIs));
  }
  if (is_path(words[0]))
    return refuse(
        text, "is a path",
        "write pip:PATH to install the folder, reqs:PATH for its requirements.txt, local:PATH to "
        "put the folder on the path");
  if (words[0].empty() || words[0].starts_with('-'))
    return refuse(text, "does not begin with a package's name", std::string(kThereIs));
  spec.args = std::move(words);
  return spec;
}

Result<std::vector<Spec>> parse_specs(const std::vector<std::string>& texts) {
  if (texts.size() > kMostSpecs)
    return fail(Errc::invalid_input, fmt::format("more than {} specs are given", kMostSpecs));
  std::vector<Spec> specs;
  for (const std::string& text : texts) {
    LOCKSTEP_TRY_ASSIGN(Spec spec, parse_spec(text));
    specs.push_back(std::move(spec));
  }
  return specs;
}

bool is_in_project(const Spec& spec) {
  const bool file = spec.kind == Kind::tree || spec.kind == Kind::requirements ||
                    spec.kind == Kind::conda || spec.kind == Kind::local;
  return file && !spec.subject.starts_with('/') && !spec.subject.starts_with('~');
}

std::string base_name(std::string_view path) {
  while (path.size() > 1 && path.ends_with('/'))
    path.remove_suffix(1);
  return std::string(path.substr(path.rfind('/') + 1));
}

}  // namespace lockstep::setup
