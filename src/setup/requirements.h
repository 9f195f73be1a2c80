// What other files a requirements file, or pip's arguments, lead to. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::setup {

struct Reference {
  enum class Kind {
    requirements,  // -r or -c: a file of the same kind, relative to the one that names it
    content,       // a file or folder that is installed from, relative to the working folder
  };
  Kind kind;
  std::string path;  // as it is written; never a URL

  bool operator==(const Reference&) const = default;
};

// What pip's arguments lead to.
std::vector<Reference> references_in_arguments(const std::vector<std::string>& args);

// What a requirements file leads to, or the pip part of a conda environment (YAML's "- " in front
// of a line does not count).
std::vector<Reference> references_in_file(std::string_view text);

}  // namespace lockstep::setup
