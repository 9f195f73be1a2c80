#include "ssh/mux_codec.h"

namespace lockstep::ssh::mux {
namespace {

enum Type : std::uint32_t {
  kHello = 0x00000001,
  kNewSession = 0x10000002,
  kNewStdioForward = 0x10000008,
  kPermissionDenied = 0x80000002,
  kFailure = 0x80000003,
  kExitMessage = 0x80000004,
  kSessionOpened = 0x80000006,
};
constexpr std::uint32_t kNoEscapeCharacter = 0xffffffff;

void put_number(std::string& out, std::uint32_t value) {
  // SSH sends the highest byte first.
  for (int shift = 24; shift >= 0; shift -= 8)
    out.push_back(static_cast<char>(value >> shift & 0xFF));
}

void put_text(std::string& out, std::string_view text) {
  put_number(out, static_cast<std::uint32_t>(text.size()));
  out.append(text);
}

std::string packet(const std::string& body) {
  std::string out;
  put_text(out, body);
  return out;
}

// A missing field reads as 0 or "", and good() turns false.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}
  std::uint32_t number() {
    std::uint32_t value = 0;
    for (const char c : take(4))
      value = value << 8 | static_cast<unsigned char>(c);
    return value;
  }
  std::string text() { return std::string(take(number())); }
  bool good() const { return good_; }

 private:
  std::string_view take(std::size_t size) {
    if (size > bytes_.size()) good_ = false;
    if (!good_) return {};
    const std::string_view taken = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return taken;
  }
  std::string_view bytes_;
  bool good_ = true;
};

Message parse(Reader& reader) {
  const std::uint32_t type = reader.number();
  if (type == kHello) return Hello{reader.number()};
  reader.number();  // the request, or the session
  switch (type) {
    case kSessionOpened:
      return Opened{reader.number()};
    case kExitMessage:
      return Exited{reader.number()};
    case kPermissionDenied:
    case kFailure:
      return Refused{reader.text()};
    default:
      return Other{type};
  }
}

}  // namespace

std::string hello() {
  std::string body;
  put_number(body, kHello);
  put_number(body, kVersion);
  return packet(body);
}

std::string new_session(std::uint32_t request, std::string_view command) {
  std::string body;
  put_number(body, kNewSession);
  put_number(body, request);
  put_text(body, "");  // reserved
  for (int i = 0; i < 4; ++i)
    put_number(body, 0);  // no terminal, no X11, no agent, no subsystem
  put_number(body, kNoEscapeCharacter);
  put_text(body, "");  // the terminal's type
  put_text(body, command);
  return packet(body);
}

std::string new_forward(std::uint32_t request, std::string_view host, std::uint32_t port) {
  std::string body;
  put_number(body, kNewStdioForward);
  put_number(body, request);
  put_text(body, "");  // reserved
  put_text(body, host);
  put_number(body, port);
  return packet(body);
}

std::optional<Message> take_message(std::string_view& bytes, bool& broken) {
  if (bytes.size() < 4) return std::nullopt;
  const std::uint32_t size = Reader(bytes).number();
  // Every message begins with its type, which takes 4 bytes.
  if (size < 4 || size > kMaxPacket) {
    broken = true;
    return std::nullopt;
  }
  if (bytes.size() - 4 < size) return std::nullopt;
  Reader reader(bytes.substr(4, size));
  Message message = parse(reader);
  if (!reader.good()) {
    broken = true;
    return std::nullopt;
  }
  bytes.remove_prefix(4 + size);
  return message;
}

}  // namespace lockstep::ssh::mux
