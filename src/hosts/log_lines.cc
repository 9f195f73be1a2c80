#include "hosts/log_lines.h"

#include "base/text.h"
#include "base/utf8.h"
#include "codec/base64.h"
#include "codec/json.h"

#include <algorithm>
#include <charconv>
#include <utility>

namespace lockstep::hosts {
namespace {

// A program may print "[rank5000000000]: " itself. Such a line counts as a line without a rank.
constexpr int kMostRanks = 1 << 20;

std::string tag_of(const OutputLine& line) {
  const std::string number = std::to_string(line.rank.value_or(0));
  if (line.is_row) return std::string(kRowTag) + number + "]: ";
  std::string text = kRankTemplate;
  replace_all(text, "${rank}", number);
  return text;
}

// Removes the tag from the line and returns its number. nullopt: the line has no such tag.
std::optional<int> take_tag(std::string_view before, std::string_view& line) {
  constexpr std::string_view kBehind = "]: ";
  if (!line.starts_with(before)) return {};
  int rank = 0;
  const char* end = line.data() + line.size();
  const auto [at, error] = std::from_chars(line.data() + before.size(), end, rank);
  const std::string_view rest(at, static_cast<std::size_t>(end - at));
  // A worker may print similar text itself, so check every part of the tag.
  if (error != std::errc() || rank < 0 || rank > kMostRanks || !rest.starts_with(kBehind))
    return {};
  line = rest.substr(kBehind.size());
  return rank;
}

}  // namespace

void OutputLines::put(std::string_view bytes, const Put& put) {
  while (!bytes.empty()) {
    const std::string_view piece =
        bytes.substr(0, std::min(bytes.find('\n'), bytes.size() - 1) + 1);
    bytes.remove_prefix(piece.size());
    if (rest_.empty() && piece.ends_with('\n')) {  // the usual case: no copy
      put(line(piece));
      continue;
    }
    rest_.append(piece);
    if (piece.ends_with('\n') || rest_.size() >= kMostLine) take_rest(put);
  }
}

void OutputLines::take_rest(const Put& put) {
  if (rest_.empty()) return;
  const std::string piece = std::exchange(rest_, {});
  put(line(piece));
}

OutputLine OutputLines::line(std::string_view piece) {
  OutputLine line{.rank = rank_, .text = piece, .begins = !mid_line_};
  if (line.begins) {
    rank_ = take_tag("[rank", line.text);
    is_row_ = !rank_;
    if (is_row_) rank_ = take_tag(kRowTag, line.text);
    line.rank = rank_;
  }
  line.is_row = rank_ && is_row_;
  mid_line_ = !piece.ends_with('\n');
  return line;
}

std::string tagged_text(const OutputLine& line) {
  return (line.rank ? tag_of(line) : std::string()).append(line.text);
}

std::string without_inner_tags(const OutputLine& line) {
  std::string text(line.text);
  if (line.rank) replace_all(text, "\r" + tag_of(line), "\r");
  return text;
}

std::string LineForm::text(const OutputLine& line) const {
  if (rank && line.rank != rank) return {};
  if (json) return before + log_line_rest(line);
  if (joins_pieces) return line.begins ? before + tagged_text(line) : std::string(line.text);
  // Another host may print next, so a piece of a line needs a line end, too.
  return before + tagged_text(line) + (line.ends() ? "" : "\n");
}

std::string log_line_head(std::string_view node, std::string_view stream) {
  std::string head = codec::print_json(nlohmann::ordered_json{{"node", node}, {"stream", stream}});
  // Replace the closing brace, so that the rest of each line can follow. The head is printed once
  // for all lines of an output.
  head.back() = ',';
  return head;
}

std::string log_line_rest(const OutputLine& line) {
  std::string_view text = line.text;
  if (line.ends()) text.remove_suffix(1);
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  if (line.rank) json[line.is_row ? "row" : "rank"] = *line.rank;
  json["text"] = text;
  // JSON is UTF-8. The printer replaces wrong bytes, which base64 keeps.
  if (!is_utf8(text)) json["text_base64"] = codec::base64_encode(text);
  if (!line.ends()) json["cut"] = true;
  // Without the opening brace, which log_line_head() has.
  return codec::print_json(json).substr(1) + "\n";
}

}  // namespace lockstep::hosts
