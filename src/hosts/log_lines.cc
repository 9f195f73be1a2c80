#include "hosts/log_lines.h"

#include "base/text.h"
#include "base/utf8.h"
#include "codec/base64.h"
#include "codec/json.h"

#include <charconv>

namespace lockstep::hosts {
std::string rank_prefix(std::int64_t rank) {
  std::string text = kRankTemplate;
  replace_all(text, "${rank}", std::to_string(rank));
  return text;
}

std::optional<std::int64_t> take_rank(std::string_view& line) {
  constexpr std::string_view kBefore = "[rank";
  constexpr std::string_view kBehind = "]: ";
  if (!line.starts_with(kBefore)) return {};
  std::int64_t rank = 0;
  const char* end = line.data() + line.size();
  const auto [at, error] = std::from_chars(line.data() + kBefore.size(), end, rank);
  const std::string_view rest(at, static_cast<std::size_t>(end - at));
  // A worker may print similar text itself, so check every part of the prefix.
  if (error != std::errc() || rank < 0 || !rest.starts_with(kBehind)) return {};
  line = rest.substr(kBehind.size());
  return rank;
}

std::string log_line_head(std::string_view node, std::string_view stream) {
  std::string head = codec::print_json(nlohmann::ordered_json{{"node", node}, {"stream", stream}});
  // Replace the closing brace, so that the rest of each line can follow. The head is printed once
  // for all lines of an output.
  head.back() = ',';
  return head;
}

std::string log_line_rest(std::string_view line) {
  const bool cut = !line.ends_with('\n');
  if (!cut) line.remove_suffix(1);
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  if (const auto rank = take_rank(line)) json["rank"] = *rank;
  json["text"] = line;
  // JSON is UTF-8. The printer replaces wrong bytes, which base64 keeps.
  if (!is_utf8(line)) json["text_base64"] = codec::base64_encode(line);
  if (cut) json["cut"] = true;
  // Without the opening brace, which log_line_head() has.
  return codec::print_json(json).substr(1) + "\n";
}

}  // namespace lockstep::hosts
