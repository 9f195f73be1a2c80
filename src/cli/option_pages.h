// Reference pages, generated from the option tables: a man page a subcommand (roff), and one page
// of every option (Markdown, docs/options.md). Called when packages are made, never by the product
// itself.
#pragma once

#include "cli/subcommand.h"

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::cli {

struct ManPage {
  std::string name;  // "lockstep-run", its file is lockstep-run.1
  std::string text;
};

// lockstep(1) and one page for each subcommand that has options. date: as 2026-11-22.
std::vector<ManPage> man_pages(const Program& program, std::string_view version,
                               std::string_view date);

std::string options_markdown(const Program& program);

}  // namespace lockstep::cli
