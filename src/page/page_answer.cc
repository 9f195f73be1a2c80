#include "page/page_answer.h"

#include "codec/json.h"
#include "codec/json_fields.h"
#include "codec/url.h"

#include <fmt/core.h>

#include <algorithm>

namespace lockstep::page {
namespace {

constexpr std::size_t kMostBytes = 8192;
constexpr std::size_t kMostText = 300;
constexpr std::size_t kLeastToken = 16;

// Returns whether the text has only letters, digits and some of these marks.
bool is_plain(std::string_view text, std::string_view marks) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [marks](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           marks.find(c) != std::string_view::npos;
  });
}

}  // namespace

static void fields(codec::JsonFields& io, PageAnswer& answer) {
  io("node", answer.node);
  io("place", answer.place, {0, 1 << 24});
  io("group_rank", answer.group_rank, {0, 1 << 24});
  io("host", answer.host);
  io("port", answer.port, {0, 65535});
  io("token", answer.token);
  io("refusal", answer.refusal);
  if (!io.reads() || !answer.serves()) return;
  // Another node sends these words, and the user opens an address that is made of them.
  io.require(is_plain(answer.host, ".:-_"), "host", "an address");
  io.require(answer.token.size() >= kLeastToken && is_plain(answer.token, "-_.~"), "token",
             "a token");
}

std::string page_answer_json(const PageAnswer& answer) {
  return codec::print_json(codec::write_fields(answer));
}

Result<PageAnswer> read_page_answer(std::string_view text) {
  PageAnswer answer;
  LOCKSTEP_TRY(codec::read_fields(codec::parse_json(text, {.bytes = kMostBytes}), answer,
                                  {.strict = false, .text = kMostText, .printable = kMostText}));
  return answer;
}

bool is_known(const std::vector<PageAnswer>& answers, const PageAnswer& answer) {
  return std::find(answers.begin(), answers.end(), answer) != answers.end();
}

std::string page_address(std::string_view host, int port, std::string_view token) {
  return fmt::format("http://{}/?token={}", codec::host_text(std::string(host), port, false),
                     token);
}

}  // namespace lockstep::page
