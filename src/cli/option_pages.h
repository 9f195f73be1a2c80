// Reference pages, generated from the option tables: one man page for each subcommand (roff), and
// one page with all options (Markdown, docs/options.md). Used by the build of packages only; the
// product does not contain this code.
#pragma once

#include "cli/subcommand.h"

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::cli {

struct ManPage {
  std::string name;  // "lockstep-run"; the file is lockstep-run.1
  std::string text;
};

// Returns lockstep(1) and one page for each subcommand with options. date: as 2026-11-22.
std::vector<ManPage> man_pages(const Program& program, std::string_view version,
                               std::string_view date);

// Returns the text of docs/options.md.
std::string options_markdown(const Program& program);

}  // namespace lockstep::cli
