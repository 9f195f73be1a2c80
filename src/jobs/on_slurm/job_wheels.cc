#include "jobs/on_slurm/job_wheels.h"

#include "base/text.h"
#include "codec/json_members.h"
#include "io/digest.h"
#include "io/fd.h"
#include "io/own_folders.h"
#include "setup/spec.h"

#include <fmt/core.h>

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

namespace lockstep::jobs::on_slurm {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kScheme = "wheel:";
constexpr std::uint64_t kLargest = 4ULL << 30;
constexpr std::size_t kMostWheels = 64;
constexpr std::size_t kDigits = 64;

bool is_wheel_name(std::string_view name) {
  return name.ends_with(".whl") && std::count(name.begin(), name.end(), '-') >= 4 &&
         name.find('/') == std::string_view::npos && !name.starts_with('.');
}

bool is_hex(std::string_view text) {
  return text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// Returns the wheel that was built under this key; empty: there is none.
std::string built_wheel(const std::string& key) {
  std::error_code trouble;
  for (fs::directory_iterator at(io::cache_folder() + "/wheel-builds/" + key, trouble), end;
       !trouble && at != end; at.increment(trouble))
    if (at->path().extension() == ".whl") return at->path().string();
  return {};
}

Result<std::string> find_wheel(std::string text, const std::string& folder) {
  if (text.starts_with(kScheme)) {
    text.erase(0, kScheme.size());
    // A key becomes part of a path: accept hex digits only.
    if (is_hex(text) && !text.empty())
      if (std::string path = built_wheel(text); !path.empty()) return path;
  }
  std::string path = text;
  if (path.starts_with("~/")) path = io::home_folder() + path.substr(1);
  if (!path.starts_with('/')) path.insert(0, folder + "/");
  struct stat info {};
  if (stat(path.c_str(), &info) != 0)
    return fail(Errc::invalid_input, fmt::format("--wheel: there is no {}", printable(text)),
                "give a file, or wheel:KEY of a wheel from lockstep wheel");
  if (!S_ISREG(info.st_mode) || !is_wheel_name(setup::base_name(path)))
    return fail(
        Errc::invalid_input, fmt::format("--wheel: {} must be a wheel", printable(text)),
        "a wheel is named NAME-VERSION-PYTHON-ABI-PLATFORM.whl; lockstep wheel builds wheels");
  if (static_cast<std::uint64_t>(info.st_size) > kLargest)
    return fail(Errc::invalid_input,
                fmt::format("--wheel: {} is larger than 4 GiB", printable(text)));
  return path;
}

// Copy, do not link: the user may replace the wheel while the job waits.
Status bring(const std::string& from, const std::string& to) {
  std::error_code trouble;
  fs::copy_file(from, to, trouble);
  if (trouble) return fail_sys(fmt::format("copy {} to {}", from, to), trouble.value());
  return {};
}

}  // namespace

std::string wheels_text(const JobWheels& wheels) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const JobWheel& each : wheels.wheels)
    list.push_back({{"file", each.file}, {"sha256", each.sha256}, {"bytes", each.bytes}});
  return codec::print_json(nlohmann::ordered_json{
             {"wheels", std::move(list)}, {"place", wheels.place}, {"spare", wheels.spare}}) +
         "\n";
}

Result<JobWheels> wheels_from_text(std::string_view text) {
  const auto damaged = [] { return fail(Errc::corrupt, "the job's wheels.json is damaged"); };
  const nlohmann::json json = codec::parse_json(text);
  if (!json.is_object() || !json.contains("wheels") || !json["wheels"].is_array() ||
      json["wheels"].size() > kMostWheels)
    return damaged();
  JobWheels wheels{.wheels = {}, .place = codec::text_member(json, "place")};
  wheels.spare = static_cast<int>(
      std::clamp<std::int64_t>(codec::integer_member(json, "spare"), 0, std::int64_t{1} << 20));
  if (!wheels.place.starts_with('/')) return damaged();
  for (const auto& each : json["wheels"]) {
    if (!each.is_object()) return damaged();
    const std::int64_t bytes = codec::integer_member(each, "bytes");
    JobWheel wheel{codec::text_member(each, "file"), codec::text_member(each, "sha256"),
                   static_cast<std::uint64_t>(bytes)};
    // Names become paths on the nodes: check them as strictly as the user's.
    if (!is_wheel_name(wheel.file) || wheel.sha256.size() != kDigits || !is_hex(wheel.sha256) ||
        bytes <= 0 || wheel.bytes > kLargest)
      return damaged();
    wheels.wheels.push_back(std::move(wheel));
  }
  return wheels;
}

Result<std::vector<std::string>> find_wheels(const std::vector<std::string>& given,
                                             const std::string& folder) {
  if (given.size() > kMostWheels)
    return fail(Errc::invalid_input, fmt::format("--wheel: more than {} wheels", kMostWheels));
  std::vector<std::string> paths;
  for (const std::string& each : given) {
    LOCKSTEP_TRY_ASSIGN(std::string path, find_wheel(each, folder));
    const auto same = [&](const std::string& other) {
      return setup::base_name(other) == setup::base_name(path);
    };
    // Two wheels of one name would overwrite each other in the job's folder.
    if (std::any_of(paths.begin(), paths.end(), same))
      return fail(Errc::invalid_input,
                  fmt::format("--wheel: {} is given twice", printable(setup::base_name(path))));
    paths.push_back(std::move(path));
  }
  return paths;
}

Status add_wheels(const slurm::JobFolder& folder, const std::vector<std::string>& paths,
                  JobWheels wheels) {
  if (paths.empty()) return {};
  const std::string top = folder.at(kWheelsFolder);
  if (mkdir(top.c_str(), 0700) != 0) return fail_sys("make " + top, errno);
  for (const std::string& path : paths) {
    const std::string file = setup::base_name(path);
    const std::string copy = fmt::format("{}/{}", top, file);
    LOCKSTEP_TRY(bring(path, copy));
    // Hash the copy: the original may change during the copy.
    LOCKSTEP_TRY_ASSIGN(std::string sha256, io::sha256_of_file(copy));
    std::error_code trouble;
    const std::uint64_t bytes = fs::file_size(copy, trouble);
    if (trouble) return fail_sys("read " + copy, trouble.value());
    wheels.wheels.push_back({file, std::move(sha256), bytes});
  }
  return io::write_file(folder.at(kWheelsFile), wheels_text(wheels));
}

}  // namespace lockstep::jobs::on_slurm
