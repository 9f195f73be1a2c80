// The agent's log: lines on stderr in the form that torchrun users know:
//   W1121 00:04:40.839000 4711 lockstep] text
// LOGLEVEL sets the level (DEBUG, INFO, WARNING, ERROR, CRITICAL or a Python number; default
// WARNING). Each message is one write, and every line of a message repeats the header. Never
// throws. Blocks only while stderr does.
#pragma once

#include <fmt/core.h>

#include <string_view>

namespace lockstep::log {

enum class Level { debug = 10, info = 20, warning = 30, error = 40, critical = 50 };

void set_level(Level level);
// Reads LOGLEVEL. An unknown name leaves the level unchanged.
void set_level_from_env();
bool enabled(Level level);
void write(Level level, std::string_view text);
// Sends lines to a sink (the console of tee, so that lines are not torn). nullptr: to stderr.
using Sink = void (*)(void* context, std::string_view bytes);
void set_sink(Sink sink, void* context);

template <class... Args>
void debug(fmt::format_string<Args...> format, Args&&... args) {
  if (enabled(Level::debug)) write(Level::debug, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void info(fmt::format_string<Args...> format, Args&&... args) {
  if (enabled(Level::info)) write(Level::info, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void warning(fmt::format_string<Args...> format, Args&&... args) {
  if (enabled(Level::warning))
    write(Level::warning, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void error(fmt::format_string<Args...> format, Args&&... args) {
  if (enabled(Level::error)) write(Level::error, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace lockstep::log
