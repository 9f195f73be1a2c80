// Small pure helpers for text: splitting, numbers, quoting, "did you mean".
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

// Splits: "a,b,,c" -> {"a","b","","c"}; "" -> {""}.
std::vector<std::string> split(std::string_view text, char separator);
std::string join(std::span<const std::string> parts, std::string_view separator);
std::string_view strip(std::string_view text);  // removes white space at both ends
std::string to_upper(std::string_view text);
std::string to_lower(std::string_view text);
void replace_all(std::string& text, std::string_view from, std::string_view to);

// Parses like Python's int(text): allows surrounding white space, a sign, and single underscores
// between digits. nullopt: not an integer, or it does not fit.
std::optional<std::int64_t> parse_int(std::string_view text);
// Parses like Python's float(text), for finite decimal input.
std::optional<double> parse_float(std::string_view text);

// Quotes for a POSIX shell: unchanged if harmless, else in single quotes.
std::string shell_quote(std::string_view text);
std::string shell_join(std::span<const std::string> argv);

// Returns a printable form of bytes from outside, for messages. Control characters and broken UTF-8
// become \xNN. Longer input is cut after `limit` bytes, between characters.
std::string printable(std::string_view bytes, std::size_t limit = 200);

// Counts edits; swapping two neighbouring letters is one edit. did_you_mean: nullopt if no
// candidate is close enough.
std::size_t edit_distance(std::string_view a, std::string_view b);
std::optional<std::string> did_you_mean(std::string_view given,
                                        std::span<const std::string> candidates);

}  // namespace lockstep
