#include "cloud/money.h"

#include "base/text.h"

#include <fmt/core.h>

#include <limits>

namespace lockstep::cloud {
namespace {

constexpr std::int64_t kMostDollars = 1'000'000'000;

}  // namespace

std::string dollars_text(Micros amount, int digits) {
  const bool below = amount < 0;
  if (below) amount = -amount;
  // An amount below a cent needs more digits, or the text would be 0.00.
  if (amount != 0 && amount < kDollar / 100) digits = std::max(digits, 4);
  Micros unit = kDollar;
  for (int i = 0; i < digits; ++i)
    unit /= 10;
  if (unit < 1) unit = 1;
  amount = (amount + unit / 2) / unit * unit;
  std::string text = fmt::format("{}{}", below ? "-" : "", amount / kDollar);
  if (digits > 0)
    text += fmt::format(".{:06}", amount % kDollar).substr(0, static_cast<std::size_t>(digits) + 1);
  return text;
}

Result<Micros> parse_dollars(std::string_view text) {
  const auto bad = [&] {
    return fail(
        Errc::invalid_input,
        fmt::format("an amount of US dollars must be a number (got '{}')", printable(text, 40)),
        "write it as 30 or 2.50");
  };
  std::string_view rest = strip(text);
  if (!rest.empty() && rest.front() == '$') rest.remove_prefix(1);
  const std::size_t point = rest.find('.');
  const std::string_view whole = rest.substr(0, point);
  std::string_view part = point == std::string_view::npos ? "" : rest.substr(point + 1);
  if (whole.empty() && part.empty()) return bad();
  Micros amount = 0;
  for (const char c : whole) {
    if (c < '0' || c > '9') return bad();
    amount = amount * 10 + (c - '0');
    // Stop before the sum can overflow.
    if (amount > kMostDollars) return bad();
  }
  amount *= kDollar;
  Micros unit = kDollar / 10;
  for (const char c : part) {
    if (c < '0' || c > '9' || unit == 0) return bad();
    amount += unit * (c - '0');
    unit /= 10;
  }
  return amount;
}

Micros cost_of(Micros per_hour, std::int64_t ms) {
  if (per_hour <= 0 || ms <= 0) return 0;
  const std::int64_t hours = ms / kMsPerHour;
  const std::int64_t rest = ms % kMsPerHour;
  // Multiply hours and rest separately, so that the product fits into 64 bits: a million dollars an
  // hour for a thousand years does.
  return per_hour * hours + (per_hour / kMsPerHour * rest +
                             (per_hour % kMsPerHour * rest + kMsPerHour - 1) / kMsPerHour);
}

}  // namespace lockstep::cloud
