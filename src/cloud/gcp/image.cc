#include "cloud/gcp/image.h"

#include "base/text.h"
#include "cloud/gcp/values.h"
#include "codec/url.h"

#include <fmt/core.h>

#include <algorithm>

namespace lockstep::cloud::gcp {
namespace {

constexpr std::string_view kUbuntu = "ubuntu-os-accelerator-images";
constexpr std::string_view kDeepLearning = "deeplearning-platform-release";
constexpr const char* kPlain =
    "projects/ubuntu-os-cloud/global/images/family/ubuntu-2404-lts-amd64";

bool is_image_text(std::string_view text) {
  return !text.empty() && text.size() <= 300 && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == ':' ||
           c == '/' || c == '_';
  });
}

// Returns "projects/P/global/images/NAME" of an image's URL.
std::string path_of_url(std::string_view url) {
  const std::size_t start = url.find("projects/");
  return start == std::string_view::npos ? std::string() : std::string(url.substr(start));
}

Image read_image(const nlohmann::json& image) {
  const std::string path = path_of_url(text_at(image, "selfLink"));
  return {is_image_text(path) ? path : std::string(),
          static_cast<int>(std::clamp<std::int64_t>(number_at(image, "diskSizeGb"), 0, 65'536))};
}

Asked<Image> get_image(Api& api, Web& web, const std::string& path) {
  const auto answer = api.ask(web, {.target = "/compute/v1/" + path, .shown = "the image"});
  if (!answer) return tl::make_unexpected(answer.error());
  return read_image(*answer);
}

// Replaces `newest` and `latest` (its time) with a newer image of the page. Skips deprecated
// images.
void take_newest(const nlohmann::json& page, std::string& latest, Image& newest) {
  for (const nlohmann::json* item : items_at(page, "items")) {
    // A missing member counts as good: an image that is not deprecated has no such state.
    const std::string state = text_at(*item, "deprecated/state");
    const std::string status = text_at(*item, "status");
    const std::string architecture = text_at(*item, "architecture");
    if ((!state.empty() && state != "ACTIVE") || (!status.empty() && status != "READY") ||
        (!architecture.empty() && architecture != "X86_64"))
      continue;
    // Compare the times as texts. Their UTC offsets differ by an hour at most, and releases lie
    // further apart.
    std::string made = text_at(*item, "creationTimestamp");
    Image image = read_image(*item);
    if (made <= latest || image.path.empty()) continue;
    latest = std::move(made);
    newest = std::move(image);
  }
}

Asked<Image> newest_of(Api& api, Web& web, std::string_view project, std::string_view families) {
  Image newest;
  std::string latest;
  const auto done = api.ask_pages(
      web,
      {.target = fmt::format("/compute/v1/projects/{}/global/images?filter={}&maxResults=500",
                             project, codec::percent_code(fmt::format("family eq {}", families))),
       .shown = "images with a driver"},
      10, [&](const nlohmann::json& page) {
        take_newest(page, latest, newest);
        return true;
      });
  if (!done) return tl::make_unexpected(done.error());
  if (!newest.path.empty()) return newest;
  return tl::make_unexpected(
      refusal_with(404, "notFound", fmt::format("no image {} in {}", families, project)));
}

}  // namespace

std::string image_path(std::string_view given, std::string_view project) {
  std::string path(given);
  if (given.starts_with("https://")) path = path_of_url(given);
  if (!is_image_text(path) || path.find("..") != std::string::npos) return {};
  if (path.starts_with("projects/"))
    return path.find("/global/images/") != std::string::npos ? path : std::string();
  if (path.starts_with("global/images/")) path.erase(0, 14);
  const std::size_t slash = path.find('/');
  // Only "family/NAME" may contain a slash. 6 is the length of "family".
  if (slash != std::string::npos && path.rfind('/') != 6) return {};
  if (slash != std::string::npos && !path.starts_with("family/")) return {};
  return fmt::format("projects/{}/global/images/{}", project, path);
}

Asked<Image> find_image(Api& api, Web& web, std::string_view given, std::string_view gpu,
                        std::string_view arch) {
  if (!given.empty()) {
    const std::string path = image_path(given, api.project());
    if (path.empty())
      return tl::make_unexpected(refusal_with(
          400, "invalid",
          fmt::format("'{}' cannot be an image: write projects/PROJECT/global/images/NAME, or "
                      "family/NAME, or a NAME of the own project",
                      printable(given, 100))));
    return get_image(api, web, path);
  }
  if (gpu.empty()) return get_image(api, web, kPlain);
  const Gpu* known = find_gpu(gpu);
  // GPUs before Turing need NVIDIA's own kernel module, which Ubuntu's images don't have.
  const bool open = known == nullptr || known->open_kernel_module;
  if (open) {
    const std::string family =
        fmt::format("projects/{}/global/images/family/ubuntu-accelerator-2404-{}-with-nvidia-580",
                    kUbuntu, arch == "arm64" ? "arm64" : "amd64");
    auto found = get_image(api, web, family);
    if (found || found.error().status != 404 || arch == "arm64") return found;
  }
  // Names of these families contain moving version numbers, so choose the newest image.
  return newest_of(api, web, kDeepLearning, "common-cu.*");
}

}  // namespace lockstep::cloud::gcp
