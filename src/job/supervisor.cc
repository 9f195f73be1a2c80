#include "job/supervisor.h"

#include "base/clock_ms.h"
#include "base/exit_codes.h"
#include "base/id.h"
#include "base/text.h"
#include "container/enter.h"
#include "host/own_addresses.h"
#include "io/own_folders.h"
#include "io/own_stream.h"
#include "job/queue.h"
#include "job/stop_job.h"
#include "proc/find_in_path.h"
#include "proc/signals.h"
#include "setup/environment.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

namespace lockstep::job {
namespace {

constexpr std::size_t kMostInput = 32UL << 20;
constexpr std::chrono::seconds kTrialTime{3};
constexpr std::size_t kMostTargets = 1024;  // hosts to try
// Jobs of other clients end without notice, so the queue is polled.
constexpr std::chrono::seconds kQueueLook{1};
constexpr std::size_t kKeptJobs = 200;  // older ones are removed at each start of a job

std::vector<JobRecord> all_jobs() {
  std::vector<JobRecord> jobs;
  for (const std::string& id : JobFiles::ids())
    if (const auto files = JobFiles::open(id))
      if (auto record = files->record()) jobs.push_back(std::move(*record));
  return jobs;
}

Result<std::vector<std::string>> texts(const nlohmann::json& request, const char* name) {
  std::vector<std::string> out;
  if (!request.is_object() || !request.contains(name) || !request[name].is_array())
    return fail(Errc::corrupt, std::string("the client gives no ") + name);
  for (const nlohmann::json& each : request[name]) {
    if (!each.is_string()) return fail(Errc::corrupt, std::string("bad ") + name);
    out.push_back(each.get<std::string>());
  }
  return out;
}

// Returns this host's processor, as `uname -m` prints it.
std::string machine() {
  utsname here{};
  uname(&here);
  return here.machine;
}

std::string in_home(const std::string& folder) {
  return folder.starts_with('/') ? folder : io::home_folder() + "/" + folder;
}

// Replaces variables in `env` by those of `given` with the same name.
void join_environment(std::vector<std::string>& env, const std::vector<std::string>& given) {
  const auto name = [](const std::string& entry) { return entry.substr(0, entry.find('=')); };
  for (const std::string& entry : given)
    std::erase_if(env, [&](const std::string& old) { return name(old) == name(entry); });
  env.insert(env.end(), given.begin(), given.end());
}

}  // namespace

Supervisor::Supervisor() : turn_(loop_) {}

int Supervisor::run() {
  auto signals = proc::SignalWatch::open(loop_, [this](int number) { on_signal(number); });
  if (!signals) return 1;
  signals_ = std::move(*signals);
  input_watch_ = std::make_unique<io::Watch>(loop_, STDIN_FILENO);
  input_watch_->start(io::kReadable, [this](int) { on_input(); });
  loop_.run();
  return 0;
}

void Supervisor::on_input() {
  std::array<char, 65536> bytes;
  const ssize_t got = read(STDIN_FILENO, bytes.data(), bytes.size());
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) return leave();  // the client has gone before "go"
  input_.append(bytes.data(), static_cast<std::size_t>(got));
  if (input_.size() > kMostInput)
    return refuse(fail(Errc::invalid_input, "the job's description is too large").value());
  // Lines may come in parts, or several at once.
  std::size_t end = 0;
  while (phase_ == Phase::talking && (end = input_.find('\n')) != std::string::npos) {
    const std::string line = input_.substr(0, end);
    input_.erase(0, end + 1);
    on_line(line);
  }
}

void Supervisor::on_line(std::string_view line) {
  const nlohmann::json request =
      codec::parse_json(line, {.bytes = kMostInput, .members = 1UL << 20, .values = 1UL << 20});
  Status done = fail(Errc::corrupt, "the client sent an invalid line: " + printable(line, 40));
  if (request.is_object() && request.contains("prepare")) done = prepare(request["prepare"]);
  if (files_ && request.is_object() && request.contains("try"))
    done = try_addresses(request["try"]);
  // The client has its answers: no more callers are expected.
  if (files_ && request.is_object() && request.contains("tried")) {
    end_trial();
    say({{"closed", true}});
    done = {};
  }
  if (files_ && request.is_object() && request.contains("go")) done = go(request["go"]);
  if (!done) refuse(done.error());
}

Status Supervisor::prepare(const nlohmann::json& request) {
  if (files_) return fail(Errc::corrupt, "the client prepares the job twice");
  LOCKSTEP_TRY_ASSIGN(spec_, spec_from_json(request));
  const std::string folder = in_home(spec_.folder);
  struct stat found {};
  if (stat(folder.c_str(), &found) != 0) return fail_sys(folder, errno);
  if (!S_ISDIR(found.st_mode)) return fail(Errc::invalid_input, folder + ": it is not a folder");
  // Before create(): the job itself must not be in the list.
  const std::vector<JobRecord> others = all_jobs();
  // create() takes the job's lock, which this process holds for life. The lock tells others that
  // the job has a supervisor.
  LOCKSTEP_TRY_ASSIGN(files_, JobFiles::create(spec_));
  forget_stop_reason(*files_);
  state_.supervisor = getpid();
  LOCKSTEP_TRY(files_->keep(state_));
  nlohmann::ordered_json facts = {{"addresses", nlohmann::ordered_json::array()},
                                  {"port", 0},
                                  {"secret", ""},
                                  {"machine", machine()},
                                  {"let_go", jobs_let_go(spec_, others)}};
  if (!spec_.image.empty()) {
    LOCKSTEP_TRY_ASSIGN(const auto env, environment());
    // The client names all hosts at once.
    const Status able = container::check_here(spec_.image, folder, proc::path_in(env), spec_.queue);
    if (!able) facts["unable"] = able.error().message;
  }
  // Any node may host the rendezvous one day, so all others try its addresses.
  if (spec_.nodes > 1) {
    const std::string secret = random_uuid4();
    LOCKSTEP_TRY_ASSIGN(place_, ReachedPlace::open(loop_, secret));
    facts["addresses"] = host::own_addresses();
    facts["port"] = place_->port();
    facts["secret"] = secret;
  }
  say({{"prepared", std::move(facts)}});
  return {};
}

Status Supervisor::try_addresses(const nlohmann::json& request) {
  if (!request.is_array() || request.size() > kMostTargets)
    return fail(Errc::corrupt, "the client gives no hosts to try");
  std::vector<ReachTarget> targets;
  for (const nlohmann::json& each : request) {
    ReachTarget target;
    LOCKSTEP_TRY_ASSIGN(target.addresses, texts(each, "addresses"));
    if (!each.contains("port") || !each["port"].is_number_unsigned() || !each.contains("secret") ||
        !each["secret"].is_string())
      return fail(Errc::corrupt, "the client gives no port to try");
    target.port = each["port"].get<std::uint16_t>();
    target.secret = each["secret"].get<std::string>();
    targets.push_back(std::move(target));
  }
  // Each address costs a socket. A missing socket would read as a host that cannot be reached.
  const rlimit limit = io::raise_open_files_limit();
  if (!open_files_) open_files_ = limit;
  // On the loop, because the other hosts call this one meanwhile.
  trial_ = std::make_unique<ReachTrial>(loop_, targets, kTrialTime,
                                        [this](const ReachTrial::Reached& reached) {
                                          say({{"reached", reached}});
                                        });
  return {};
}

// The job's processes must have the limits of the user.
void Supervisor::end_trial() {
  trial_.reset();
  place_.reset();
  if (open_files_) setrlimit(RLIMIT_NOFILE, &*open_files_);
  open_files_.reset();
}

Status Supervisor::go(const nlohmann::json& request) {
  LOCKSTEP_TRY_ASSIGN(const auto words, texts(request, "words"));
  LOCKSTEP_TRY_ASSIGN(spec_.after, texts(request, "after"));
  spec_.run.insert(spec_.run.begin(), words.begin(), words.end());
  LOCKSTEP_TRY(files_->keep(spec_));
  end_trial();
  if (spec_.queue) {
    state_.stage = Stage::queued;
    // Recorded before the check, so that two queued jobs see each other.
    LOCKSTEP_TRY(files_->keep(state_));
    const auto ahead = jobs_ahead(spec_, all_jobs());
    if (!ahead.empty()) {
      say({{"queued", ahead}});
      phase_ = Phase::queued;
      hang_up();
      turn_.start(kQueueLook, [this] { take_turn(); });
      return {};
    }
  }
  LOCKSTEP_TRY(start_run());
  say({{"started", child_->pid()}});
  hang_up();
  return {};
}

void Supervisor::say(const nlohmann::ordered_json& answer) const {
  // If the client is gone, the end of the input reports that.
  const std::string line = codec::print_json(answer) + "\n";
  if (!io::write_all(STDOUT_FILENO, line, "the answer")) return;
}

void Supervisor::refuse(const Error& error) {
  std::string text = error.message;
  if (!error.hint.empty()) text += "; " + error.hint;
  say({{"refused", text}});
  leave();
}

// The job never began: nothing of it may stay.
void Supervisor::leave() {
  phase_ = Phase::over;
  end_trial();
  // A resumed job has output from before. Keep it.
  if (files_ && !spec_.resumes) files_->remove();
  loop_.stop();
}

// No client is needed from here on. Give up the connection's descriptors, so that the link can
// close.
void Supervisor::hang_up() {
  input_watch_.reset();
  // The link of this request ends once no process holds its pipes.
  const io::Fd null(open("/dev/null", O_RDWR | O_CLOEXEC));
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    dup2(null.get(), fd);
  forget_old_jobs(kKeptJobs);
}

void Supervisor::take_turn() {
  if (!jobs_ahead(spec_, all_jobs()).empty()) {
    turn_.start(kQueueLook, [this] { take_turn(); });
    return;
  }
  if (const Status started = start_run(); !started) {
    state_.problem = started.error().message;
    end(kExitCannotRun);
  }
}

Result<std::vector<std::string>> Supervisor::environment() const {
  const std::string folder = in_home(spec_.folder);
  std::vector<std::string> env;
  for (char** entry = environ; *entry != nullptr; ++entry)
    env.emplace_back(*entry);
  // Later variables win: this host's, the project's, the job's, the client's.
  LOCKSTEP_TRY_ASSIGN(const auto of_project, setup::project_environment(folder, env));
  join_environment(env, of_project);
  // Programs find their job's id and name in these variables.
  join_environment(
      env, {"PWD=" + folder, "LOCKSTEP_JOB_ID=" + spec_.id, "LOCKSTEP_JOB_NAME=" + spec_.name});
  join_environment(env, spec_.env);
  return env;
}

Status Supervisor::start_run() {
  proc::SpawnSpec spec;
  // Start this binary, not the `lockstep` of PATH: the job must run the version that the client has
  // sent.
  LOCKSTEP_TRY_ASSIGN(spec.executable, proc::own_executable());
  spec.argv = {"lockstep", "run", "--report=" + files_->path("report.json"),
               "--log-dir=" + files_->path("ranks")};
  spec.argv.insert(spec.argv.end(), spec_.run.begin(), spec_.run.end());
  spec.folder = in_home(spec_.folder);
  LOCKSTEP_TRY_ASSIGN(spec.env, environment());
  LOCKSTEP_TRY_ASSIGN(const io::Fd out, files_->output("out"));
  LOCKSTEP_TRY_ASSIGN(const io::Fd err, files_->output("err"));
  const io::Fd null(open("/dev/null", O_RDONLY | O_CLOEXEC));
  spec.stdin_fd = null.get();
  spec.stdout_fd = out.get();
  spec.stderr_fd = err.get();
  LOCKSTEP_TRY_ASSIGN(child_, proc::spawn(spec));
  // The environment may hold secrets: release the memory.
  std::vector<std::string>().swap(spec_.env);
  phase_ = Phase::running;
  state_.stage = Stage::running;
  state_.started_ms = unix_ms();
  // The job runs. A failed record must not stop it.
  (void)files_->keep(state_);
  // A pidfd instead of SIGCHLD: it belongs to this child alone.
  end_watch_ = std::make_unique<io::Watch>(loop_, child_->pidfd());
  end_watch_->start(io::kReadable, [this](int) { on_end(); });
  return {};
}

void Supervisor::on_signal(int number) {
  if (number != SIGTERM && number != SIGINT) return;
  state_.canceled = true;
  if (files_) state_.problem = stop_reason(*files_);
  switch (phase_) {
    case Phase::talking:
      return leave();
    case Phase::queued:
      // A queued job has no processes yet.
      turn_.cancel();
      return end(128 + number);
    case Phase::running:
      (void)files_->keep(state_);
      // `lockstep run` lets its ranks end in time and reports a code.
      kill(child_->pid(), SIGTERM);
      return;
    case Phase::over:
      return;
  }
}

void Supervisor::on_end() {
  const auto exit = child_->reap();
  if (!exit) return;
  end_watch_.reset();
  end(exit->shell_code());
}

void Supervisor::end(int code) {
  phase_ = Phase::over;
  state_.stage = Stage::ended;
  state_.ended_ms = unix_ms();
  state_.code = code;
  (void)files_->keep(state_);
  loop_.stop();
}

Result<int> start_supervisor() {
  if (!io::is_pipe_or_socket(STDIN_FILENO))
    return fail(Errc::invalid_input, "this is an internal command, started by clients on hosts");
  // Block before the fork, so that the supervisor inherits the mask and no signal falls between.
  proc::block(proc::handled_signals());
  // With an inherited SIG_IGN the kernel would drop the exit code of `lockstep run`.
  signal(SIGCHLD, SIG_DFL);
  signal(SIGPIPE, SIG_IGN);
  // Fork before setsid(): the parent may lead its session, and on some systems the end of a session
  // leader ends the whole session.
  const pid_t supervisor = fork();
  if (supervisor < 0) return fail_sys("start the supervisor", errno);
  if (supervisor > 0) return 0;
  // A session of its own: signals to the session of the connection must not reach the job.
  setsid();
  if (chdir("/") != 0) return fail_sys("enter /", errno);
  Supervisor here;
  return here.run();
}

}  // namespace lockstep::job
