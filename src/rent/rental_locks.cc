#include "rent/rental_locks.h"

#include "io/file_lock.h"
#include "io/own_folders.h"

#include <fmt/core.h>

#include <chrono>
#include <cstdint>

namespace lockstep::rent {
namespace {

constexpr std::int64_t kAccountPatienceMs = 60'000;
constexpr std::chrono::milliseconds kAccountPause{100};

}  // namespace

Status RentalLocks::take(const std::string& cluster) {
  LOCKSTEP_TRY(io::make_folders(folder_ + "/rentals"));
  const std::string path = folder_ + "/rentals/" + cluster + ".lock";
  LOCKSTEP_TRY_ASSIGN(io::FileLock file, io::FileLock::open(path));
  if (!file.try_lock().value_or(false))
    return fail(Errc::unavailable,
                fmt::format("another lockstep is renting or terminating '{}'", cluster),
                "wait for it, or end it");
  held_.emplace_back(cluster, std::move(file).release());
  return {};
}

Result<io::Fd> RentalLocks::take_account(cloud::Web& web) const {
  LOCKSTEP_TRY(io::make_folders(folder_));
  const std::string path = folder_ + "/account.lock";
  LOCKSTEP_TRY_ASSIGN(io::FileLock file, io::FileLock::open(path));
  const std::int64_t until = web.now_ms() + kAccountPatienceMs;
  // flock() cannot wait with a limit, and a blocking wait would not see the user's signal: try
  // again.
  while (!file.try_lock().value_or(false)) {
    // Go on without the lock: its holder may hang, and must not stop launches for ever.
    if (web.now_ms() >= until) return io::Fd();
    LOCKSTEP_TRY(web.pause(kAccountPause));
  }
  return std::move(file).release();
}

void RentalLocks::release(const std::string& cluster) {
  std::erase_if(held_, [&](const auto& held) { return held.first == cluster; });
}

}  // namespace lockstep::rent
