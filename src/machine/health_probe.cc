#include "machine/health_probe.h"

#include "base/last_line.h"
#include "base/text.h"
#include "codec/json_members.h"
#include "io/fd.h"
#include "io/own_folders.h"
#include "machine/elevated.h"
#include "proc/tool_output.h"

#include <fmt/core.h>

#include <errno.h>
#include <fcntl.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

namespace lockstep::machine {
namespace {

using Clock = std::chrono::steady_clock;

// A broken driver makes these programs hang, so each of them has a limit.
constexpr std::chrono::seconds kSmiPatience{30};
constexpr std::chrono::seconds kCudaPatience{60};
constexpr std::chrono::seconds kLogPatience{10};
constexpr std::size_t kMostLog = 16UL << 20;
constexpr std::size_t kMostAnswer = 256UL << 10;
constexpr std::size_t kMostXids = 20;
constexpr std::size_t kTrial = 1UL << 20;  // bytes written to the disk as a test
constexpr std::int64_t kMostBytes = 64 << 20;

// Our binary is static and cannot load the driver's library, so a Python does. In containers a
// session by ssh lacks LD_LIBRARY_PATH, so usual folders are tried. The marker separates our line
// from anything that a library prints.
constexpr const char* kOpenGpus = R"(import ctypes, json, sys
def say(**answer):
    print('lockstep:' + json.dumps(answer))
    sys.exit()
cuda = None
for folder in ('', '/usr/lib/x86_64-linux-gnu/', '/usr/lib64/', '/usr/local/nvidia/lib64/'):
    try:
        cuda = cuda or ctypes.CDLL(folder + 'libcuda.so.1')
    except OSError as error:
        trouble = str(error)
if cuda is None:
    say(cuda='no library', error=trouble, opened=0)
opened = 0
def must(name, *arguments):
    code = getattr(cuda, name)(*arguments)
    if code:
        text = ctypes.c_char_p()
        try:
            cuda.cuGetErrorString(code, ctypes.byref(text))
        except AttributeError:
            pass
        words = (text.value or b'no words for it').decode(errors='replace')
        say(cuda='failed', error='%s: %d (%s)' % (name, code, words), code=code, opened=opened)
must('cuInit', 0)
count = ctypes.c_int()
must('cuDeviceGetCount', ctypes.byref(count))
for index in range(count.value):
    device, context = ctypes.c_int(), ctypes.c_void_p()
    must('cuDeviceGet', ctypes.byref(device), index)
    must('cuCtxCreate_v2', ctypes.byref(context), 0, device)
    opened += 1
    cuda.cuCtxDestroy_v2(context)
say(cuda='opened', error='', opened=opened)
)";
constexpr std::string_view kMarker = "lockstep:";

void probe_driver(HealthFacts& facts) {
  const auto said = proc::tool_output({"nvidia-smi", "--query-gpu=driver_version,name,memory.total",
                                       "--format=csv,noheader,nounits"},
                                      proc::own_environment(), {.patience = kSmiPatience});
  if (!said) {
    facts.driver_error = said.error().message;
    return;
  }
  take_driver_rows(said->exit.ok() ? said->out : "", facts);
  if (!facts.driver.empty()) return;
  const std::string words = said->out + "\n" + said->err;
  facts.driver_error = fmt::format("nvidia-smi ended with {}: {}", said->exit.shell_code(),
                                   printable(last_line(words)));
}

void probe_cuda(HealthFacts& facts) {
  // -I ignores PYTHONPATH and the current folder, where a file of the user could hide a module.
  const auto said = proc::tool_output({"python3", "-I", "-c", kOpenGpus}, proc::own_environment(),
                                      {.patience = kCudaPatience});
  if (said) {
    take_cuda_answer(said->out, facts);
    if (facts.cuda != HealthFacts::Cuda::not_opened) return;
    facts.cuda_error = "python3: " + printable(last_line(said->err));
    // A signal that kills this small program would kill a job, too.
    if (said->exit.signal == 0) return;
    facts.cuda = HealthFacts::Cuda::failed;
    facts.cuda_error =
        fmt::format("the test that opens GPUs ended with signal {}", said->exit.signal);
  } else if (said.error().code == Errc::timeout) {
    facts.cuda = HealthFacts::Cuda::failed;
    facts.cuda_error = fmt::format("the GPUs do not open within {} s", kCudaPatience.count());
  } else {
    facts.cuda_error = "python3 is not installed";
  }
}

Status try_disk() {
  const std::string folder = io::state_folder();
  // The state folder is where jobs write.
  LOCKSTEP_TRY(io::make_folders(folder));
  const std::string path = folder + "/health.tmp";
  const io::Fd fd(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) return fail_sys("open " + path, errno);
  Status written = io::write_all(fd.get(), std::string(kTrial, 'x'), path);
  // Without fsync() the write would stay in memory, and a failing disk would not show.
  if (written && fsync(fd.get()) != 0) written = fail_sys("write " + path, errno);
  unlink(path.c_str());
  return written;
}

void probe_disk(HealthFacts& facts) {
  if (const Status tried = try_disk(); !tried) facts.disk_error = tried.error().message;
  struct statvfs info {};
  if (statvfs(io::home_folder().c_str(), &info) == 0)
    facts.disk_free = static_cast<std::int64_t>(info.f_bavail * info.f_frsize);
}

// --- over the link

Result<std::string> first_line() {
  std::string line;
  // One byte at a time: the bytes to be measured follow on the same descriptor.
  for (char c = 0; line.size() < 4096;) {
    const ssize_t got = read(STDIN_FILENO, &c, 1);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    if (c == '\n') return line;
    line += c;
  }
  return fail(Errc::corrupt, "the client asks nothing");
}

// Returns the milliseconds from the first byte to the last; 0: not all came.
std::int64_t take_bytes(std::int64_t bytes) {
  std::array<char, 65536> buffer;
  Clock::time_point begin;
  for (std::int64_t left = bytes; left > 0;) {
    const ssize_t got =
        read(STDIN_FILENO, buffer.data(),
             static_cast<std::size_t>(std::min<std::int64_t>(left, std::ssize(buffer))));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return 0;
    // The clock starts with the first bytes: the client may need time to begin.
    if (left == bytes) begin = Clock::now();
    left -= got;
  }
  const auto took = std::chrono::ceil<std::chrono::milliseconds>(Clock::now() - begin);
  return std::max<std::int64_t>(took.count(), 1);
}

// Returns bytes that compression on the way cannot shrink (xorshift).
std::string noise(std::int64_t bytes) {
  std::string text(static_cast<std::size_t>(bytes), '\0');
  std::uint64_t state = 0x9e3779b97f4a7c15;
  for (char& byte : text) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    byte = static_cast<char>(state);
  }
  return text;
}

// The facts are gathered in a child process: the driver may hang while bytes are measured.
struct Gathering {
  pid_t pid = 0;
  io::Fd from;
};

Result<Gathering> start_gathering(bool gpus) {
  LOCKSTEP_TRY_ASSIGN(io::Pipe pipe, io::make_pipe());
  const pid_t pid = fork();
  if (pid < 0) return fail_sys("look at this machine", errno);
  if (pid == 0) {
    const std::string text = codec::print_json(to_json(probe_health(gpus)));
    // _exit(), because the child must not run the parent's cleanup.
    _exit(io::write_all(pipe.write.get(), text, "the answer") ? 0 : 1);
  }
  return Gathering{pid, std::move(pipe.read)};
}

std::string gathered(const Gathering& gathering) {
  std::string text;
  std::array<char, 4096> bytes;
  for (;;) {
    const ssize_t got = read(gathering.from.get(), bytes.data(), bytes.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0 || text.size() > kMostAnswer) break;
    text.append(bytes.data(), static_cast<std::size_t>(got));
  }
  // The exit of the child closes the pipe, so the wait is short.
  waitpid(gathering.pid, nullptr, 0);
  return text;
}

}  // namespace

void take_driver_rows(std::string_view text, HealthFacts& facts) {
  for (const std::string& line : split(text, '\n')) {
    const auto fields = split(line, ',');
    if (fields.size() != 3) continue;
    facts.driver = std::string(strip(fields[0]));
    facts.gpus.push_back({std::string(strip(fields[1])), parse_int(fields[2]).value_or(0)});
  }
}

void take_cuda_answer(std::string_view text, HealthFacts& facts) {
  for (const std::string& line : split(text, '\n')) {
    if (!line.starts_with(kMarker)) continue;
    const nlohmann::json answer = codec::parse_json(std::string_view(line).substr(kMarker.size()));
    if (!answer.is_object()) return;
    const std::string cuda = codec::text_member(answer, "cuda");
    facts.cuda = cuda == "opened"       ? HealthFacts::Cuda::opened
                 : cuda == "no library" ? HealthFacts::Cuda::no_library
                                        : HealthFacts::Cuda::failed;
    facts.cuda_gpus = static_cast<int>(codec::integer_member(answer, "opened"));
    facts.cuda_error = codec::text_member(answer, "error");
    facts.cuda_code = static_cast<int>(codec::integer_member(answer, "code"));
  }
}

std::vector<std::string> xid_lines(std::string_view kernel_log) {
  std::vector<std::string> found;
  for (const std::string& line : split(kernel_log, '\n'))
    if (line.find("NVRM: Xid") != std::string::npos && found.size() < kMostXids)
      found.push_back(printable(strip(line)));
  return found;
}

HealthFacts probe_health(bool gpus) {
  HealthFacts facts;
  if (gpus) {
    probe_driver(facts);
    if (!facts.driver.empty()) probe_cuda(facts);
    // Most images let only root read the kernel log.
    const auto log = run_as_root({"dmesg"}, {.patience = kLogPatience, .output = kMostLog});
    if (log) facts.xids = xid_lines(log->out);
  }
  probe_disk(facts);
  return facts;
}

Result<int> serve_health() {
  LOCKSTEP_TRY_ASSIGN(const std::string line, first_line());
  const nlohmann::json request = codec::parse_json(line);
  if (!request.is_object()) return fail(Errc::corrupt, "the client's request is unreadable");
  // Bounds the time and the memory of the measurement.
  const std::int64_t bytes =
      std::clamp<std::int64_t>(codec::integer_member(request, "bytes"), 0, kMostBytes);
  const auto wants_gpus = request.find("gpus");
  const auto clock = std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::system_clock::now().time_since_epoch());
  LOCKSTEP_TRY(io::write_all(STDOUT_FILENO,
                             codec::print_json(nlohmann::json{{"clock_ns", clock.count()}}) + "\n",
                             "the client"));
  LOCKSTEP_TRY_ASSIGN(const Gathering gathering,
                      start_gathering(wants_gpus != request.end() && *wants_gpus == true));
  const std::int64_t down_ms = take_bytes(bytes);
  // The newline lets the client read on line by line.
  LOCKSTEP_TRY(io::write_all(STDOUT_FILENO, noise(bytes) + "\n", "the client"));
  const nlohmann::json facts = codec::parse_json(gathered(gathering));
  const nlohmann::json answer{{"facts", facts}, {"down_ms", down_ms}};
  LOCKSTEP_TRY(io::write_all(STDOUT_FILENO, codec::print_json(answer) + "\n", "the client"));
  return 0;
}

}  // namespace lockstep::machine
