// Test tool: prints the sample program's completion script for a shell.
// tests/integration/test_completion.py runs the script.
#include "cli/completion.h"
#include "cli/program_testing.h"

#include <cstdio>

int main(int argc, char** argv) {
  const auto script = lockstep::cli::completion_script(lockstep::cli::sample::kProgram,
                                                       argc > 1 ? argv[1] : "bash");
  if (!script) return 1;
  std::fputs(script->c_str(), stdout);
  return 0;
}
