#include "slurm/python_probe.h"

#include "base/text.h"
#include "proc/tool_output.h"
#include "slurm/preflight_text.h"

#include <fmt/core.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <utility>

namespace lockstep::slurm {
namespace {

constexpr std::size_t kLongestLine = 64U << 10;

// The question. Three traps: (1) With -c, Python puts the current folder on sys.path, but a script
// in another folder does not have it there. (2) A folder named torch is found as a namespace
// package without an origin. (3) Imported modules may print, so answers are on lines of their own
// with a marker.
constexpr const char* kQuestion = R"(import sys
if sys.path and sys.path[0] == '':
    sys.path.pop(0)
import importlib, importlib.util, json, os
def say(**facts):
    sys.stdout.write('\nlockstep:' + json.dumps(facts) + '\n')
    sys.stdout.flush()
def words(error):
    return type(error).__name__ + ': ' + (str(error).strip().splitlines() or [''])[0]
say(version='.'.join(map(str, sys.version_info[:3])))
facts = {'torch': '', 'trouble': '', 'broken': []}
try:
    found = importlib.util.find_spec('torch')
    if found and found.origin:
        import torch
        facts['torch'] = str(torch.__version__)
        if torch.version.cuda or getattr(torch.version, 'hip', None):
            facts['gpus'] = torch.cuda.device_count()
except BaseException as error:
    facts['trouble'] = 'import torch fails: ' + words(error)
for name in sys.argv[1:]:
    try:
        importlib.import_module(name)
    except BaseException as error:
        facts['broken'].append(name + ': ' + words(error))
say(**facts)
os._exit(0)
)";

}  // namespace

PythonProbe::PythonProbe(io::Loop& loop, const PythonQuestion& question, std::function<void()> done)
    : loop_(loop), done_(std::move(done)), later_(loop) {
  answer_.asked = true;
  answer_.path = question.python;
  const Status started = start(question);
  if (started) return;
  answer_.trouble = started.error().message;
  finish();
}

PythonProbe::~PythonProbe() {
  if (!child_ || child_->reap()) return;
  // Kill the whole group: imported modules may have started processes.
  child_->signal_group(SIGKILL);
  // Wait: this process will exec another program, which would inherit the zombie.
  waitpid(child_->pid(), nullptr, 0);
}

Status PythonProbe::start(const PythonQuestion& question) {
  LOCKSTEP_TRY_ASSIGN(io::Pipe pipe, io::make_pipe());
  const io::Fd null(open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!null) return fail_sys("open /dev/null", errno);
  proc::SpawnSpec spec;
  spec.executable = question.python;
  spec.argv = {question.python, "-c", kQuestion};
  spec.argv.insert(spec.argv.end(), question.modules.begin(), question.modules.end());
  spec.env = proc::own_environment();
  spec.stdin_fd = null.get();
  spec.stdout_fd = pipe.write.get();
  // stderr, too: the last line tells why Python did not start.
  spec.stderr_fd = pipe.write.get();
  LOCKSTEP_TRY_ASSIGN(child_, proc::spawn(spec));
  output_ = std::move(pipe.read);
  reading_ = std::make_unique<io::Watch>(loop_, output_.get());
  reading_->start(io::kReadable, [this](int) { read(); });
  end_ = std::make_unique<io::Watch>(loop_, child_->pidfd());
  end_->start(io::kReadable, [this](int) { ended(); });
  return {};
}

void PythonProbe::read() {
  std::array<char, 16U << 10> bytes;
  while (true) {
    const ssize_t got = ::read(output_.get(), bytes.data(), bytes.size());
    if (got < 0 && errno == EINTR) continue;
    if (got == 0) reading_->stop();
    if (got <= 0) return;
    for (const char c : std::string_view(bytes.data(), static_cast<std::size_t>(got))) {
      if (c != '\n') {
        // A module may print without line breaks; keep the beginning only.
        if (unread_.size() < kLongestLine) unread_ += c;
        continue;
      }
      take_python_line(unread_, answer_);
      if (!strip(unread_).empty()) last_line_ = unread_;
      unread_.clear();
    }
  }
}

// The pipe may still hold the answer when the process has ended, so read once more.
void PythonProbe::ended() {
  const auto exit = child_->reap();
  if (!exit) return;
  end_->stop();
  read();
  reading_->stop();
  if (!answer_.finished)
    answer_.trouble =
        fmt::format("{} {}: {}", answer_.path,
                    exit->signal != 0 ? fmt::format("was killed by signal {}", exit->signal)
                                      : fmt::format("ended with {}", exit->code),
                    answer_.version.empty() ? printable(last_line_) : "while it imported PyTorch");
  answer_.finished = true;
  finish();
}

// Calls done_ from the loop, never from inside the constructor.
void PythonProbe::finish() {
  later_.start({}, [this] {
    if (const auto done = std::exchange(done_, nullptr)) done();
  });
}

}  // namespace lockstep::slurm
