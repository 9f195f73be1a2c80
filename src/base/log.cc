// Formats log lines and writes them to stderr or to a sink.
#include "base/log.h"

#include "base/mid_line.h"
#include "base/text.h"

#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

namespace lockstep::log {
namespace {
Level g_level = Level::warning;
Sink g_sink = nullptr;
void* g_sink_context = nullptr;

char letter(Level level) {
  switch (level) {
    case Level::debug:
      return 'D';
    case Level::info:
      return 'I';
    case Level::warning:
      return 'W';
    case Level::error:
      return 'E';
    case Level::critical:
      return 'C';
  }
  return '?';
}

std::string header(Level level) {
  // The form is torchrun's, with "lockstep" in place of the source line.
  timeval now{};
  gettimeofday(&now, nullptr);
  tm local{};
  localtime_r(&now.tv_sec, &local);
  return fmt::format("{}{:02}{:02} {:02}:{:02}:{:02}.{:06} {} lockstep] ", letter(level),
                     local.tm_mon + 1, local.tm_mday, local.tm_hour, local.tm_min, local.tm_sec,
                     now.tv_usec, getpid());
}

void write_all(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(STDERR_FILENO, bytes.data(), bytes.size());
    if (written <= 0) return;  // the reader is gone: nothing more can be done
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}
}  // namespace

void set_level(Level level) {
  g_level = level;
}

void set_level_from_env() {
  const char* value = std::getenv("LOGLEVEL");
  if (value == nullptr) return;
  const std::string name = to_upper(strip(value));
  if (name == "DEBUG") g_level = Level::debug;
  if (name == "INFO") g_level = Level::info;
  if (name == "WARNING" || name == "WARN") g_level = Level::warning;
  if (name == "ERROR") g_level = Level::error;
  if (name == "CRITICAL" || name == "FATAL") g_level = Level::critical;
  // Python accepts any number as a level.
  if (const auto number = parse_int(name)) g_level = static_cast<Level>(*number);
}

bool enabled(Level level) {
  return level >= g_level;
}

void set_sink(Sink sink, void* context) {
  g_sink = sink;
  g_sink_context = context;
}

void write(Level level, std::string_view text) {
  if (!enabled(level)) return;
  // Build the whole message first: one write keeps messages of several processes apart.
  const std::string head = header(level);
  std::string out;
  // A multi-line message repeats the header, as in torchrun, so that each line can be attributed.
  for (const std::string& line : split(text, '\n'))
    out += head + printable(line, std::string::npos) + "\n";
  if (g_sink != nullptr) {
    g_sink(g_sink_context, out);
  } else {
    end_line();
    write_all(out);
  }
}

}  // namespace lockstep::log
