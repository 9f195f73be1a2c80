#include "rent/job_claim.h"

#include "io/own_folders.h"
#include "proc/tool_output.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdint>

namespace lockstep::rent {
namespace {

// Each rental locks one byte of one file, at an offset hashed from its id. A file for each rental
// would be left behind after the job. F_OFD locks cover bytes past the end of the file.
struct flock lock_of(const std::string& rental) {
  std::uint64_t sum = 14'695'981'039'346'656'037U;  // FNV-1a
  for (const char letter : rental)
    sum = (sum ^ static_cast<unsigned char>(letter)) * 1'099'511'628'211U;
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = static_cast<off_t>(sum >> 2);
  lock.l_len = 1;
  return lock;
}

std::string claims_file() {
  return io::state_folder() + "/rentals/jobs.lock";
}

Result<io::Fd> take_job(const std::string& rental, int how) {
  LOCKSTEP_TRY(io::make_folders(io::state_folder() + "/rentals"));
  io::Fd file(::open(claims_file().c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file) return fail_sys("open " + claims_file(), errno);
  struct flock lock = lock_of(rental);
  while (fcntl(file.get(), how, &lock) != 0) {
    if (errno == EAGAIN || errno == EACCES)
      return fail(Errc::already_exists, "another lockstep goes on with its job");
    if (errno != EINTR) return fail_sys("lock " + claims_file(), errno);
  }
  return file;
}

}  // namespace

Result<io::Fd> claim_job(const std::string& rental) {
  return take_job(rental, F_OFD_SETLK);
}

Result<io::Fd> await_job(const std::string& rental) {
  return take_job(rental, F_OFD_SETLKW);
}

bool job_is_claimed(const std::string& rental) {
  // Query the lock without taking it, so that no follower is kept out meanwhile.
  const io::Fd file(::open(claims_file().c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  struct flock lock = lock_of(rental);
  return file && fcntl(file.get(), F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

Result<proc::Child> start_follower(const std::string& rental, bool by_command) {
  const io::Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  proc::SpawnSpec spec;
  LOCKSTEP_TRY_ASSIGN(spec.executable, proc::own_executable());
  spec.argv = {"lockstep", kFollowCommand, rental};
  if (!by_command) spec.argv.emplace_back(kForeignEnvironment);
  spec.env = proc::own_environment();
  spec.folder = "/";
  spec.stdin_fd = spec.stdout_fd = spec.stderr_fd = null.get();
  // A follower must outlive the command and its terminal.
  spec.die_with_parent = false;
  return proc::spawn(spec);
}

std::string follow_log(const std::string& cluster) {
  return follow_logs(cluster).back();
}

std::vector<std::string> follow_logs(const std::string& cluster) {
  std::vector<std::string> paths;
  paths.reserve(kFollowLogEndings.size());
  for (const std::string_view ending : kFollowLogEndings)
    paths.push_back(io::state_folder() + "/rentals/" + cluster + std::string(ending));
  return paths;
}

}  // namespace lockstep::rent
