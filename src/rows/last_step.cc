#include "rows/last_step.h"

#include "base/text.h"
#include "codec/json_members.h"
#include "io/fd.h"

#include <fmt/core.h>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

namespace lockstep::rows {
namespace {

constexpr std::size_t kMostLooked = 16UL << 10;  // bytes at the end of a log

std::string end_of_file(const std::string& path) {
  // The program may have replaced its log: follow no link, and never wait for a FIFO.
  const io::Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!file) return {};
  const off_t size = lseek(file.get(), 0, SEEK_END);
  std::string text(kMostLooked, '\0');
  const ssize_t got = pread(file.get(), text.data(), text.size(),
                            std::max<off_t>(size - static_cast<off_t>(kMostLooked), 0));
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return text;
}

}  // namespace

std::optional<LastStep> last_step(std::string_view text,
                                  const std::optional<logs::StepPattern>& pattern) {
  while (!text.empty()) {
    const std::size_t end = text.rfind('\n');
    const std::string_view line = end == std::string_view::npos ? text : text.substr(end + 1);
    const auto seen = logs::step_of(line, pattern);
    if (seen && !seen->is_epoch && seen->step >= 0 && seen->step < 1e15) {
      // A bar draws itself anew behind each carriage return.
      std::string_view shown = strip(line);
      shown.remove_prefix(std::min(shown.size(), shown.rfind('\r') + 1));
      return LastStep{.step = static_cast<std::int64_t>(seen->step),
                      .line = printable(shown, kMostStepLine)};
    }
    text = end == std::string_view::npos ? std::string_view() : text.substr(0, end);
  }
  return std::nullopt;
}

std::optional<LastStep> last_step_of_report(const nlohmann::json& report,
                                            const std::optional<logs::StepPattern>& pattern) {
  const std::string folder = codec::text_member(report, "log_dir");
  const std::int64_t attempts = codec::integer_member(report, "attempts_total");
  if (folder.empty() || attempts < 1) return std::nullopt;
  // Progress bars, as tqdm's, go to stderr.
  for (const char* name : {"stdout", "stderr"})
    if (auto found = last_step(
            end_of_file(fmt::format("{}/attempt_{}/0/{}.log", folder, attempts - 1, name)),
            pattern))
      return found;
  return std::nullopt;
}

std::optional<LastStep> last_step_of_output(const std::string& path,
                                            const std::optional<logs::StepPattern>& pattern) {
  constexpr std::string_view kAnyRank = "[rank";
  constexpr std::string_view kFirstRank = "[rank0]: ";
  std::string text;
  for (const std::string& line : split(end_of_file(path), '\n')) {
    const bool is_first = line.starts_with(kFirstRank);
    if (is_first || !line.starts_with(kAnyRank))
      text += line.substr(is_first ? kFirstRank.size() : 0) + "\n";
  }
  return last_step(text, pattern);
}

}  // namespace lockstep::rows
