// Which other files a requirements file, or pip's arguments, refer to. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::setup {

struct Reference {
  enum class Kind {
    requirements,  // -r or -c: a file of requirements, relative to the referring file
    content,       // a file or folder to install from, relative to the working folder
  };
  Kind kind;
  std::string path;  // as written; never a URL

  bool operator==(const Reference&) const = default;
};

// Returns the files that pip's arguments refer to.
std::vector<Reference> references_in_arguments(const std::vector<std::string>& args);

// Returns the files that a requirements file refers to, or the pip part of a conda environment:
// YAML's "- " before a line is ignored.
std::vector<Reference> references_in_file(std::string_view text);

}  // namespace lockstep::setup
