#include "remote/command.h"

#include "base/exit_codes.h"
#include "io/own_folders.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace lockstep::remote {
namespace {

constexpr const char* kResultVariable = "LOCKSTEP_RESULT_FD=3";
constexpr const char* kUsualPath = "/usr/local/bin:/usr/bin:/bin";

std::string_view name_of(std::string_view entry) {
  return entry.substr(0, entry.find('='));
}

std::string value_in(const std::vector<std::string>& env, std::string_view name) {
  for (const std::string& entry : env)
    if (name_of(entry) == name && entry.size() > name.size()) return entry.substr(name.size() + 1);
  return {};
}

// Returns the folder relative to the home, as ssh does.
std::string folder_of(const std::string& given, const std::vector<std::string>& env) {
  std::string home = value_in(env, "HOME");
  if (home.empty()) home = io::home_folder();
  if (given.starts_with('/')) return given;
  if (given.empty()) return home;
  return home + "/" + given;
}

}  // namespace

std::vector<std::string> merged_environment(const char* const* own,
                                            const std::vector<std::string>& given) {
  std::vector<std::string> env;
  // The client's variables win.
  for (; *own != nullptr; ++own) {
    const std::string_view entry(*own);
    const auto replaces = [&](const std::string& g) { return name_of(g) == name_of(entry); };
    if (std::none_of(given.begin(), given.end(), replaces)) env.emplace_back(entry);
  }
  env.insert(env.end(), given.begin(), given.end());
  return env;
}

Command::Command(io::Loop& loop, std::uint32_t channel, Events events)
    : loop_(loop), channel_(channel), events_(std::move(events)) {}

tl::expected<std::unique_ptr<Command>, Command::Refusal> Command::start(
    io::Loop& loop, const link::Start& start, const proc::Containment& containment, Events events) {
  const auto refuse = [](int code, std::string why) {
    return tl::make_unexpected(Refusal{code, std::move(why)});
  };
  if (start.argv.empty()) return refuse(kExitCannotRun, "no command was given");
  proc::SpawnSpec spec;
  if (start.own) spec.argv.emplace_back("lockstep");
  spec.argv.insert(spec.argv.end(), start.argv.begin(), start.argv.end());
  spec.env = merged_environment(environ, start.env);
  if (start.result) spec.env.emplace_back(kResultVariable);
  spec.folder = folder_of(start.folder, spec.env);
  // Check the folder first: a missing folder would end spawn() with ENOENT, too, and would read as
  // a missing program.
  struct stat folder {};
  if (stat(spec.folder.c_str(), &folder) != 0)
    return refuse(kExitCannotRun, fail_sys(spec.folder, errno).value().message);
  // Search the command's own PATH, which the client may have replaced.
  const std::string path = value_in(spec.env, "PATH");
  auto executable =
      start.own ? proc::own_executable()
                : proc::find_executable(start.argv.front(), path.empty() ? kUsualPath : path);
  if (!executable) return refuse(kExitNotFound, executable.error().message);
  spec.executable = std::move(*executable);

  auto in = io::make_pipe();
  auto out = io::make_pipe();
  auto err = io::make_pipe();
  auto result = io::make_pipe();
  for (const auto* made : {&in, &out, &err, &result})
    if (!*made) return refuse(kExitCannotRun, made->error().message);
  const io::Fd null(open("/dev/null", O_RDONLY | O_CLOEXEC));
  spec.stdin_fd = start.input ? in->read.get() : null.get();
  spec.stdout_fd = out->write.get();
  spec.stderr_fd = err->write.get();
  if (start.result) spec.third_fd = result->write.get();
  containment.apply(spec);
  std::unique_ptr<Command> command(new Command(loop, start.channel, std::move(events)));
  auto child = proc::spawn(spec);
  // ENOENT also means that the interpreter of a script is missing.
  if (!child)
    return refuse(child.error().sys == ENOENT ? kExitNotFound : kExitCannotRun,
                  child.error().message);
  command->child_ = std::move(*child);
  if (start.input) command->watch_input(std::move(in->write));
  command->watch_outputs(std::move(out->read), std::move(err->read),
                         start.result ? std::move(result->read) : io::Fd());
  return command;
}

void Command::watch_input(io::Fd in) {
  in_ = std::move(in);
  const auto consumed = [this](std::size_t bytes) {
    // Credit is for bytes in the program's pipe, not for bytes received here. A program without
    // interest in stdin therefore stops the client.
    events_.send(link::Credit{channel_, link::Stream::in, static_cast<std::uint32_t>(bytes)});
  };
  const auto finished = [this] {
    stdin_.reset();
    in_.reset();
  };
  stdin_ =
      std::make_unique<link::Sink>(loop_, in_.get(), true, link::Sink::Events{consumed, finished});
}

void Command::watch_outputs(io::Fd out, io::Fd err, io::Fd result) {
  out_ = std::move(out);
  err_ = std::move(err);
  stdout_ = source(link::Stream::out, out_.get());
  stderr_ = source(link::Stream::err, err_.get());
  if (result) {
    result_fd_ = std::move(result);
    result_ = source(link::Stream::result, result_fd_.get());
  }
  end_watch_ = std::make_unique<io::Watch>(loop_, child_->pidfd());
  end_watch_->start(io::kReadable, [this](int) { on_end(); });
}

std::unique_ptr<link::Source> Command::source(link::Stream stream, int fd) {
  return std::make_unique<link::Source>(
      loop_, fd, true,
      link::Source::Events{[this, stream](std::string bytes) {
                             events_.send(link::Data{channel_, stream, std::move(bytes)});
                           },
                           [this, stream] {
                             events_.send(link::Eof{channel_, stream});
                             finish_if_over();
                           }});
}

void Command::input(std::string_view bytes) {
  if (stdin_) stdin_->put(bytes);
}

void Command::end_of_input() {
  if (stdin_) stdin_->finish();
}

void Command::grant(link::Stream stream, std::size_t bytes) {
  if (stream == link::Stream::out) stdout_->grant(bytes);
  if (stream == link::Stream::err) stderr_->grant(bytes);
  if (stream == link::Stream::result && result_) result_->grant(bytes);
}

void Command::signal(int number) const {
  child_->signal_group(number);
}

void Command::on_end() {
  if (!child_->reap()) return;
  end_watch_.reset();
  // Leftover processes may still hold the outputs open. process_ended lets the owner kill these.
  const auto here = calls_.witness();
  // The event may destroy this object.
  events_.process_ended();
  if (!here.gone()) finish_if_over();
}

void Command::finish_if_over() {
  // Exit comes last, after all output.
  if (told_ || child_->alive() || !stdout_->at_end() || !stderr_->at_end()) return;
  if (result_ && !result_->at_end()) return;
  told_ = true;
  events_.send(link::Exit{channel_, child_->exit()->code, child_->exit()->signal});
  events_.over();
}

}  // namespace lockstep::remote
