#include "cloud/aws/kept_rows.h"

#include "base/fnv.h"
#include "base/text.h"
#include "cloud/kept_answer.h"

#include <fmt/core.h>

namespace lockstep::cloud::aws {
namespace {

// Rows are lines, with a blank between words. A word with a blank would be read as two words.
std::string text_of_rows(const WordRows& rows) {
  std::string text;
  for (const auto& row : rows)
    text += join(row, " ") + "\n";
  return text;
}

WordRows rows_of_text(std::string_view text) {
  WordRows rows;
  for (const std::string& line : split(text, '\n'))
    if (!line.empty()) rows.push_back(split(line, ' '));
  return rows;
}

// Names the file by a hash of the account mark, which may be a key id.
std::string kept_name(const Api& api, const KeptQuestion& question) {
  return fmt::format("aws-{:016x}-{}", fnv1a(api.account_mark()), question.name);
}

}  // namespace

std::optional<KeptRows> rows_at_hand(Web& web, Api& api, const KeptQuestion& question) {
  if (question.most_age_ms <= 0) return std::nullopt;
  auto kept = kept_answer(api.ring().ground().cache, kept_name(api, question), web.now_ms(),
                          question.most_age_ms);
  if (!kept) return std::nullopt;
  return KeptRows{.rows = rows_of_text(kept->text),
                  .source = Price::Source::cached,
                  .as_of_ms = kept->as_of_ms};
}

Asked<KeptRows> kept_rows(Web& web, Api& api, const KeptQuestion& question) {
  if (auto kept = rows_at_hand(web, api, question)) return std::move(*kept);
  auto rows = question.ask(web);
  if (!rows) return tl::make_unexpected(std::move(rows).error());
  const std::int64_t now = web.now_ms();
  // A failure is never kept: the next command asks again.
  keep_answer(api.ring().ground().cache, kept_name(api, question), text_of_rows(*rows), now);
  return KeptRows{.rows = std::move(*rows), .as_of_ms = now};
}

}  // namespace lockstep::cloud::aws
