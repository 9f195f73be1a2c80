// Reads and writes Kineto's datagrams.
#include "codec/kineto.h"

#include <fmt/core.h>

#include <cctype>
#include <cstring>

namespace lockstep::codec {
namespace {

constexpr std::size_t kKinetoType = 32;
constexpr std::size_t kKinetoHeader = sizeof(std::uint64_t) + kKinetoType;
constexpr std::size_t kKinetoPayload = 16;  // both kinds: two int32 and an int64
constexpr int kMostKinetoPids = 256;
constexpr std::int32_t kKinetoActivities = 2;  // a bit of a poll's `type`
constexpr std::string_view kHello = "ctxt";
constexpr std::string_view kPoll = "req";

template <class Number>
Number number_at(std::string_view bytes, std::size_t at) {
  Number number = 0;
  std::memcpy(&number, bytes.data() + at, sizeof number);
  return number;
}

std::string message(std::string_view type, std::string_view payload) {
  const std::uint64_t size = payload.size();
  std::string bytes(kKinetoHeader, '\0');
  std::memcpy(bytes.data(), &size, sizeof size);
  std::memcpy(bytes.data() + sizeof size, type.data(), type.size());
  return bytes.append(payload);
}

std::optional<KinetoMessage> read_poll(std::string_view payload) {
  const auto type = number_at<std::int32_t>(payload, 0);
  const auto count = number_at<std::int32_t>(payload, 4);
  if (count < 1 || count > kMostKinetoPids ||
      payload.size() != kKinetoPayload + sizeof(std::int32_t) * static_cast<std::size_t>(count))
    return std::nullopt;
  return KinetoMessage{.kind = KinetoMessage::Kind::poll,
                       .pid = number_at<std::int32_t>(payload, kKinetoPayload),
                       .idle = (type & kKinetoActivities) != 0};
}

}  // namespace

std::optional<KinetoMessage> read_kineto_message(std::string_view datagram) {
  if (datagram.size() < kKinetoHeader + kKinetoPayload || datagram.size() > kMostKinetoBytes)
    return std::nullopt;
  const std::string_view payload = datagram.substr(kKinetoHeader);
  if (number_at<std::uint64_t>(datagram, 0) != payload.size()) return std::nullopt;
  std::string_view type = datagram.substr(sizeof(std::uint64_t), kKinetoType);
  type = type.substr(0, type.find('\0'));
  if (type == kPoll) return read_poll(payload);
  if (type != kHello || payload.size() != kKinetoPayload) return std::nullopt;
  return KinetoMessage{.kind = KinetoMessage::Kind::hello,
                       .pid = number_at<std::int32_t>(payload, 4)};
}

std::string kineto_hello_answer(std::int32_t processes) {
  return message(kHello, {reinterpret_cast<const char*>(&processes), sizeof processes});
}

std::string kineto_poll_answer(std::string_view config) {
  return message(kPoll, config);
}

std::string kineto_config(const KinetoOrder& order) {
  std::string config = fmt::format("ACTIVITIES_LOG_FILE={}\n", order.file);
  // All ranks begin at the next multiple of the same number, so their traces show the same steps.
  if (order.steps > 0)
    return config + fmt::format(
                        "PROFILE_START_ITERATION=0\nPROFILE_START_ITERATION_ROUNDUP={}\n"
                        "ACTIVITIES_ITERATIONS={}\n",
                        order.multiple, order.steps);
  if (order.start_ms > 0)
    config += fmt::format("PROFILE_START_TIME={}\nACTIVITIES_WARMUP_PERIOD_SECS={}\n",
                          order.start_ms, kKinetoWarmUp);
  return config + fmt::format("ACTIVITIES_DURATION_MSECS={}\n", order.millis);
}

bool is_kineto_client(std::string_view name) {
  constexpr std::string_view kHead = "dynoconfigclient";
  if (!name.starts_with(kHead) || name.size() > kHead.size() + 36) return false;
  name.remove_prefix(kHead.size());
  for (const char c : name)
    if (std::isxdigit(static_cast<unsigned char>(c)) == 0 && c != '-') return false;
  return !name.empty();
}

}  // namespace lockstep::codec
