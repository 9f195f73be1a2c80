// A job's output as data. This file alone knows the tags of ranks in the text that agents write.
// Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep::hosts {

// The tag of a rank's lines in the output files of hosts: the value of --log-line-prefix-template.
inline constexpr const char* kRankTemplate = "[rank${rank}]: ";
// The same for the lines of a row of a sweep, whichever of its ranks prints them.
inline constexpr std::string_view kRowTag = "[row";

// A line, or a piece of a line. The text is valid only during the call of Put.
struct OutputLine {
  // nullopt: the line is not a rank's (a report), or the job has one rank and writes no tags.
  std::optional<int> rank = std::nullopt;
  bool is_row = false;  // `rank` is the number of a row of a sweep
  // Without the tag at its beginning. Ends with '\n', or more of the line may follow.
  std::string_view text = {};
  bool begins = true;  // false: the rest of a line whose earlier part was passed without a '\n'

  bool ends() const { return text.ends_with('\n'); }
};

// Cuts the text of an agent into lines. Use one object for each output of each host.
class OutputLines {
 public:
  // A longer line is passed on in pieces, so that a host cannot fill the memory of this process.
  static constexpr std::size_t kMostLine = 64UL << 10;
  using Put = std::function<void(const OutputLine& line)>;

  // Passes on every line that ends in these bytes. Holds the rest.
  void put(std::string_view bytes, const Put& put);
  bool has_rest() const { return !rest_.empty(); }
  // Passes on the unfinished line, if there is one.
  void take_rest(const Put& put);

 private:
  OutputLine line(std::string_view piece);

  std::string rest_;
  bool mid_line_ = false;    // the beginning of the current line was passed on
  std::optional<int> rank_;  // of the current line
  bool is_row_ = false;      // likewise
};

// Returns the line with its tag, for people.
std::string tagged_text(const OutputLine& line);
// Removes the rank's tags behind each '\r' of a redrawn line: "\r[rank1]:  10%|#".
std::string without_inner_tags(const OutputLine& line);

// The form of output that is printed line by line: JSON objects, or the lines of one rank.
struct LineForm {
  std::string before = {};                          // the name of the host, or log_line_head()
  std::optional<std::int64_t> rank = std::nullopt;  // print only the lines of this rank
  bool json = false;
  // Nothing else is printed between the pieces of a long line, so the pieces are joined again.
  bool joins_pieces = false;

  bool by_line() const { return json || rank; }
  // Returns the text to print, with a line end unless pieces are joined. "": nothing.
  std::string text(const OutputLine& line) const;
};

// Returns the beginning of a line's object, the same for all lines of one output of a node.
// log_line_rest() completes the object.
std::string log_line_head(std::string_view node, std::string_view stream);
// Returns the rest of the object and a line end. A line without an end is marked as cut: more of
// the line may follow in the next object. If the line is not UTF-8, wrong bytes are replaced in
// "text", and "text_base64" has the exact bytes.
std::string log_line_rest(const OutputLine& line);

}  // namespace lockstep::hosts
