// What is to be put into a project's environment: one spec each, as `lockstep install` takes them
// and as reqs lists in Python have them.
#pragma once

#include "base/error.h"

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::setup {

struct Spec {
  enum class Kind {
    packages,      // pip:NAME ..., or without a prefix; `args` are all of pip's arguments
    tree,          // pip:./  a folder that pip builds and installs
    requirements,  // reqs:./requirements.txt, or a folder that has one
    conda,         // conda:environment.yml
    git,           // git:URL@REF
    local,         // local:./src  on the path only
    wheel,         // wheel:dist/x-1.0-py3-none-any.whl
  };
  Kind kind = Kind::packages;
  std::string text;                    // as it was given
  std::string subject = {};            // a path or a URL as given; packages: empty
  std::string extras = {};             // tree: "[dev]"; git: "#subdirectory=x"
  std::string ref = {};                // git: a branch, tag or commit; empty: the default branch
  std::vector<std::string> args = {};  // for pip or conda, behind the subject
  bool editable = false;               // tree: pip:-e ./

  bool operator==(const Spec&) const = default;
};

inline constexpr std::size_t kMostSpecs = 1000;
inline constexpr std::size_t kLongestSpec = 16UL << 10;

// Words as a shell would split them: quotes and backslashes count, nothing is expanded.
Result<std::vector<std::string>> split_words(std::string_view text);

// Errors name the spec and what there is.
Result<Spec> parse_spec(std::string_view text);
Result<std::vector<Spec>> parse_specs(const std::vector<std::string>& texts);

// Whether it takes a Python to carry it out.
bool needs_python(const Spec& spec);
// Whether its subject is a file or folder of the project (and no absolute path on the host).
bool is_in_project(const Spec& spec);
// The last part of a path, without slashes behind it.
std::string base_name(std::string_view path);

}  // namespace lockstep::setup
