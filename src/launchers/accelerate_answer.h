// Asks the installed accelerate about the meaning of its words, once, with a small Python program,
// and reads the answer. accelerate's options change between releases, so Lockstep has no table.
// Pure except the program's text.
#pragma once

#include "launchers/launch_words.h"

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::launchers {

// A Python program that prints the answer for the words in sys.argv, and starts nothing.
extern const std::string_view kAccelerateWords;

// Converts the answer to words for `lockstep run`. words: behind `accelerate launch`. After an
// unknown kind of answer, the original command runs unchanged, with a note. Errors: invalid_input
// (accelerate refuses the words).
Result<Launch> read_accelerate_answer(std::string_view answer, std::span<const std::string> words,
                                      const ReadOptions& options);

// Returns a launch of the original command as a single process on this node. why: for the note.
Launch accelerate_itself(std::span<const std::string> words, std::string_view why);
// Returns whether accelerate_itself() made this launch.
bool is_accelerate_itself(const Launch& launch);

}  // namespace lockstep::launchers
