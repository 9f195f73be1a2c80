#include "rent/job_claim.h"

#include "io/file_lock.h"
#include "io/own_folders.h"
#include "proc/tool_output.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <utility>

namespace lockstep::rent {
namespace {

// Each rental locks a byte of one shared file, at an offset hashed from the rental's id. A file for
// each rental would be left behind after the job.
io::FileLock::Range place_of(const std::string& rental) {
  std::uint64_t sum = 14'695'981'039'346'656'037U;  // FNV-1a
  for (const char letter : rental)
    sum = (sum ^ static_cast<unsigned char>(letter)) * 1'099'511'628'211U;
  // off_t is signed: shift, so that the offset and the end of the range stay positive.
  return {.start = static_cast<off_t>(sum >> 2), .length = 1};
}

std::string claims_file() {
  return io::state_folder() + "/rentals/jobs.lock";
}

Result<io::FileLock> open_claims() {
  LOCKSTEP_TRY(io::make_folders(io::state_folder() + "/rentals"));
  return io::FileLock::open(claims_file());
}

io::Fd open_null() {
  return io::Fd(::open("/dev/null", O_RDWR | O_CLOEXEC));
}

Result<proc::SpawnSpec> course_spec(const std::string& rental, const char* how) {
  proc::SpawnSpec spec;
  LOCKSTEP_TRY_ASSIGN(spec.executable, proc::own_executable());
  spec.argv = {"lockstep", kFollowCommand, rental, how};
  spec.env = proc::own_environment();
  spec.folder = "/";
  // The process must outlive the command and its terminal.
  spec.die_with_parent = false;
  return spec;
}

}  // namespace

Result<io::Fd> claim_job(const std::string& rental) {
  LOCKSTEP_TRY_ASSIGN(io::FileLock claims, open_claims());
  LOCKSTEP_TRY_ASSIGN(const bool taken, claims.try_lock_range(place_of(rental)));
  if (!taken) return fail(Errc::already_exists, "another lockstep follows this job");
  return std::move(claims).release();
}

Result<io::Fd> await_job(const std::string& rental) {
  LOCKSTEP_TRY_ASSIGN(io::FileLock claims, open_claims());
  LOCKSTEP_TRY(claims.wait_for_range(place_of(rental)));
  return std::move(claims).release();
}

bool job_is_claimed(const std::string& rental) {
  return io::FileLock::range_is_held(claims_file(), place_of(rental));
}

Result<CourseProcess> start_course(const std::string& rental, const io::Fd& claim) {
  std::array<int, 2> ends{};
  // The course reads this pipe: a byte means that the command hands over, the end that the command
  // is gone.
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return fail_sys("pipe", errno);
  const io::Fd wait(ends[0]);
  io::Fd go(ends[1]);
  LOCKSTEP_TRY_ASSIGN(proc::SpawnSpec spec, course_spec(rental, kSharedClaim));
  spec.stdin_fd = wait.get();
  // The lock belongs to the open file, so command and course hold the lock together. The lock stays
  // when either dies.
  spec.third_fd = claim.get();
  const io::Fd null = open_null();
  spec.stdout_fd = null.get();
  // stderr stays the command's until the log of the course takes over: the user sees earlier
  // errors.
  LOCKSTEP_TRY_ASSIGN(proc::Child child, proc::spawn(spec));
  return CourseProcess{std::move(child), std::move(go)};
}

Result<proc::Child> start_follower(const std::string& rental) {
  LOCKSTEP_TRY_ASSIGN(proc::SpawnSpec spec, course_spec(rental, kForeignEnvironment));
  const io::Fd null = open_null();
  spec.stdin_fd = spec.stdout_fd = spec.stderr_fd = null.get();
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
