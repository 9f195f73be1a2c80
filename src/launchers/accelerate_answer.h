// What the accelerate that is installed says of its own words. Lockstep asks it once, with a small
// program for its Python, and reads the answer. Pure, but for the program's text.
#pragma once

#include "launchers/launch_words.h"

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::launchers {

// Python that prints the answer for the words in its sys.argv, and starts nothing.
extern const std::string_view kAccelerateWords;

// words: those behind `accelerate launch`. Where the answer is of a kind that is not known, the
// original command runs as it is, with a note.
Result<Launch> read_accelerate_answer(std::string_view answer, std::span<const std::string> words,
                                      const ReadOptions& options);

// The original command, in one process of this node.
Launch accelerate_itself(std::span<const std::string> words, std::string_view why);
bool is_accelerate_itself(const Launch& launch);

}  // namespace lockstep::launchers
