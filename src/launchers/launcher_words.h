// The readers of single launchers, for read_launch(). words: behind the launcher's own name.
#pragma once

#include "launchers/argument_split.h"
#include "launchers/launch_words.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::launchers {

// Returns the table of options, for tests.
std::span<const ArgumentRow> torchrun_rows();

// legacy: torch.distributed.launch, which gives the script its local rank as an argument.
Result<Launch> read_torchrun(std::span<const std::string> words, const ReadOptions& options,
                             bool legacy);
Result<Launch> read_deepspeed(std::span<const std::string> words, const ReadOptions& options);

// Escape '$'. `lockstep run` replaces $local_rank in arguments, as torchrun does; other launchers
// do not.
std::string kept_literally(std::string text);
void append_literally(std::span<const std::string> words, std::vector<std::string>& to);

}  // namespace lockstep::launchers
