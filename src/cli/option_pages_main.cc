// The build tool for the reference pages. `option_pages man FOLDER DATE` writes files in FOLDER.
// `option_pages markdown` writes to stdout. `option_pages check FILE` fails if FILE differs from
// that Markdown, so that docs/options.md cannot go stale.
#include "cli/commands.h"
#include "cli/option_pages.h"

#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

namespace {

bool write_man_pages(const std::string& folder, std::string_view date) {
  for (const auto& page :
       lockstep::cli::man_pages(lockstep::cli::lockstep_program(), LOCKSTEP_VERSION, date)) {
    const std::string path = folder + "/" + page.name + ".1";
    std::ofstream file(path, std::ios::binary);
    file << page.text;
    if (!file.flush()) {
      std::fprintf(stderr, "option_pages: %s cannot be written\n", path.c_str());
      return false;
    }
  }
  return true;
}

bool check(const char* program, const char* path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  if (text == lockstep::cli::options_markdown(lockstep::cli::lockstep_program())) return true;
  std::fprintf(stderr,
               "%s does not say what the option tables say; run ./dev docs, or:\n"
               "%s markdown > %s\n",
               path, program, path);
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view what = argc > 1 ? argv[1] : "";
  if (argc == 2 && what == "markdown") {
    std::fputs(lockstep::cli::options_markdown(lockstep::cli::lockstep_program()).c_str(), stdout);
    return std::fflush(stdout) == 0 ? 0 : 1;
  }
  if (argc == 3 && what == "check") return check(argv[0], argv[2]) ? 0 : 1;
  if (argc == 4 && what == "man") return write_man_pages(argv[2], argv[3]) ? 0 : 1;
  std::fputs("usage: option_pages markdown | check FILE | man FOLDER DATE\n", stderr);
  return 2;
}
