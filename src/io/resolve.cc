// A look-up blocks, so it runs on a detached thread. Thread and Lookup share a small record. Its
// lock guards whether the loop may still be used.
#include "io/resolve.h"

#include "io/signals_blocked.h"
#include "io/system_names.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

namespace lockstep::io {

struct Lookup::Shared {
  std::mutex mutex;
  Loop* loop = nullptr;  // nullptr: the answer is no longer wanted
  Done done;             // used on the loop's thread only
};

namespace {

const sockaddr_in& four(const Address& address) {
  return reinterpret_cast<const sockaddr_in&>(address.storage);
}
const sockaddr_in6& six(const Address& address) {
  return reinterpret_cast<const sockaddr_in6&>(address.storage);
}

}  // namespace

std::string address_text(const Address& address) {
  std::array<char, NI_MAXHOST> text{};
  if (getnameinfo(address.get(), address.size, text.data(), text.size(), nullptr, 0,
                  NI_NUMERICHOST) != 0) {
    return "unknown address";
  }
  std::string_view digits = text.data();
  constexpr std::string_view kMapped = "::ffff:";
  if (digits.starts_with(kMapped) && digits.find('.') != std::string_view::npos)
    digits.remove_prefix(kMapped.size());
  return std::string(digits);
}

bool is_loopback(const Address& address) {
  constexpr std::uint32_t kNet = 127;
  if (address.family() == AF_INET) return ntohl(four(address).sin_addr.s_addr) >> 24 == kNet;
  if (address.family() != AF_INET6) return false;
  const in6_addr& bytes = six(address).sin6_addr;
  return IN6_IS_ADDR_LOOPBACK(&bytes) ||
         (IN6_IS_ADDR_V4MAPPED(&bytes) && bytes.s6_addr[12] == kNet);
}

std::optional<Resolved> resolve_numeric(const std::string& host, int port) {
  if (host == "localhost") {
    auto resolved = look_up("127.0.0.1", port, Names::digits);
    auto newer = look_up("::1", port, Names::digits);
    if (!resolved) return std::nullopt;
    if (newer) resolved->addresses.push_back(newer->addresses.front());
    return std::move(*resolved);
  }
  auto resolved = look_up(host, port, Names::digits);
  if (!resolved) return std::nullopt;
  return std::move(*resolved);
}

// Starts a detached thread. Returns 0 or an errno, where std::thread would throw.
static int start_thread(std::function<void()> work) {
  auto kept = std::make_unique<std::function<void()>>(std::move(work));
  const auto run = [](void* given) -> void* {
    const std::unique_ptr<std::function<void()>> mine(static_cast<std::function<void()>*>(given));
    (*mine)();
    return nullptr;
  };
  pthread_t thread{};
  const int error = pthread_create(&thread, nullptr, run, kept.get());
  if (error != 0) return error;
  (void)kept.release();
  return pthread_detach(thread);
}

Lookup::Lookup(Loop& loop, std::string host, int port, Done done)
    : shared_(std::make_shared<Shared>()) {
  shared_->loop = &loop;
  shared_->done = std::move(done);
  const auto answer = [shared = shared_](Result<Resolved> result) {
    const std::lock_guard lock(shared->mutex);
    // The Lookup is gone. The lock keeps the loop alive during post().
    if (shared->loop == nullptr) return;
    shared->loop->post([shared, result = std::move(result)]() mutable {
      if (const auto call = std::exchange(shared->done, nullptr)) call(std::move(result));
    });
  };
  const SignalsBlocked blocked;
  const int error = start_thread(
      [answer, host = std::move(host), port] { answer(look_up(host, port, Names::any)); });
  if (error != 0) answer(fail_sys("start a thread to look up a host name", error));
}

Lookup::~Lookup() {
  const std::lock_guard lock(shared_->mutex);
  shared_->loop = nullptr;
  shared_->done = nullptr;
}

}  // namespace lockstep::io
