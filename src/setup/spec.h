// The specs of packages for a project's environment, as `lockstep install` and the reqs lists of
// the Python package write them.
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
    requirements,  // reqs:./requirements.txt, or a folder with such a file
    conda,         // conda:environment.yml
    git,           // git:URL@REF
    local,         // local:./src  only put on PYTHONPATH
    wheel,         // wheel:dist/x-1.0-py3-none-any.whl
  };
  Kind kind = Kind::packages;
  std::string text;                    // as given
  std::string subject = {};            // path or URL as given; packages: empty
  std::string extras = {};             // tree: "[dev]"; git: "#subdirectory=x"
  std::string ref = {};                // git: a branch, tag or commit; empty: the default branch
  std::vector<std::string> args = {};  // for pip or conda, after the subject
  bool editable = false;               // tree: pip:-e ./

  bool operator==(const Spec&) const = default;
};

inline constexpr std::size_t kMostSpecs = 1000;
inline constexpr std::size_t kLongestSpec = 16UL << 10;

// Splits text as a shell would: quotes and backslashes count, nothing is expanded.
Result<std::vector<std::string>> split_words(std::string_view text);

// Errors name the spec and list the forms that exist.
Result<Spec> parse_spec(std::string_view text);
Result<std::vector<Spec>> parse_specs(const std::vector<std::string>& texts);

// Returns true if the spec names a file or folder inside the project, not an absolute path on the
// host.
bool is_in_project(const Spec& spec);
// Returns the last part of a path, without trailing slashes.
std::string base_name(std::string_view path);

}  // namespace lockstep::setup
