#include "cloud/aws/image.h"

#include "base/text.h"
#include "cloud/aws/places.h"
#include "cloud/json_words.h"

#include <fmt/core.h>

namespace lockstep::cloud::aws {
namespace {

constexpr const char* kDeepLearning = "898082745236";  // AWS's deep learning images
constexpr const char* kCanonical = "099720109477";     // Ubuntu's

// Images with NVIDIA's open kernel module, with the older module, and without a driver.
struct ImageKind {
  const char* what;
  const char* parameter;  // before and behind the architecture
  const char* parameter_end;
  const char* owner;
  const char* names[2];  // in order, as far as the version's time; the second may be missing
};

constexpr ImageKind kOpenImages{"with NVIDIA's driver",
                                "deeplearning/ami/",
                                "/base-oss-nvidia-driver-gpu-ubuntu-24.04/latest/ami-id",
                                kDeepLearning,
                                {"Deep Learning Base OSS Nvidia Driver GPU AMI (Ubuntu 24.04) ",
                                 "Deep Learning Base OSS Nvidia Driver GPU AMI (Ubuntu 22.04) "}};
// Public scripts name this image with Ubuntu 20.04 only, the latest of them from 2024. No public
// document has the name with 22.04 or the parameter. Ask for both first: an unknown name costs one
// refusal.
constexpr ImageKind kOldImages{
    "with NVIDIA's driver",
    "deeplearning/ami/",
    "/base-proprietary-nvidia-driver-gpu-ubuntu-22.04/latest/ami-id",
    kDeepLearning,
    {"Deep Learning Base Proprietary Nvidia Driver GPU AMI (Ubuntu 22.04) ",
     "Deep Learning Base Proprietary Nvidia Driver GPU AMI (Ubuntu 20.04) "}};
constexpr ImageKind kPlainImages{
    "of Ubuntu",
    "canonical/ubuntu/server/24.04/stable/current/",
    "/hvm/ebs-gp3/ami-id",
    kCanonical,
    {"ubuntu/images/hvm-ssd-gp3/ubuntu-noble-24.04-amd64-server-", nullptr}};

const ImageKind& kind_of(const ImageWish& wish) {
  if (!wish.gpus) return kPlainImages;
  return wish.open_module ? kOpenImages : kOldImages;
}

ApiFailure unfit(std::string message, const char* hint) {
  return refused_here("Image", std::move(message), hint);
}

// Returns an image's id from a public parameter. The right to read parameters may be missing. Then
// returns the newest image of a list.
Asked<std::string> newest_id(Web& web, Api& api, const ImageWish& wish) {
  const ImageKind& kind = kind_of(wish);
  // Canonical's parameters say amd64 where AWS says x86_64.
  const bool as_debian = !wish.gpus && wish.arch == "x86_64";
  ApiCall call = ApiCall::of(Service::ssm, wish.region, "GetParameter",
                             fmt::format(R"({{"Name":"/aws/service/{}{}{}"}})", kind.parameter,
                                         as_debian ? "amd64" : wish.arch, kind.parameter_end));
  // Wait only briefly, since the list of images gives the same answer.
  call.timeout = call.patience = std::chrono::seconds(3);
  const auto parameter = api.ask_json(web, call);
  if (parameter) {
    std::string id = word_member(json_member(*parameter, "Parameter"), "Value");
    if (id.starts_with("ami-")) return id;
  }
  std::vector<std::string> names;
  std::vector<std::string> patterns;
  for (const char* name : kind.names) {
    if (name == nullptr) continue;
    names.emplace_back(name);
    patterns.push_back(names.back() + "*");
  }
  Query query("DescribeImages");
  query.filter("name", patterns).filter("state", "available").filter("architecture", wish.arch);
  query.add("Owner.1", kind.owner);
  // An image becomes deprecated two years after its creation. AWS lists deprecated images of other
  // owners only on request.
  if (&kind == &kOldImages) query.add("IncludeDeprecated", "true");
  auto items = api.ask_pages(web, query, wish.region, "imagesSet");
  if (!items) return tl::make_unexpected(std::move(items).error());
  std::string id = newest_image(*items, names);
  if (!id.empty()) return id;
  return tl::make_unexpected(
      unfit(fmt::format("AWS has no image {} for {} in {}", kind.what, wish.arch, wish.region),
            "give one with --image ami-..."));
}

Asked<WordRows> ask_image(Web& web, Api& api, const ImageWish& wish) {
  std::string id = wish.given;
  if (id.empty()) {
    auto newest = newest_id(web, api, wish);
    if (!newest) return tl::make_unexpected(std::move(newest).error());
    id = std::move(*newest);
  }
  Query query("DescribeImages");
  query.add("ImageId.1", id);
  auto items = api.ask_pages(web, query, wish.region, "imagesSet");
  if (!items) return tl::make_unexpected(std::move(items).error());
  const auto image = items->empty() ? std::nullopt : image_of(items->front());
  if (!image)
    return tl::make_unexpected(
        unfit(fmt::format("the image {} is not available in {}", printable(id, 40), wish.region),
              "give one of this region with --image, or none"));
  // The name of the root device differs between images (/dev/sda1, /dev/xvda): a launch needs it.
  return WordRows{{image->id, image->root_device, std::to_string(image->min_gb), image->arch}};
}

}  // namespace

std::string ImageWish::text() const {
  if (!given.empty()) return fmt::format("{}-{}", region, given);
  return fmt::format("{}-{}{}", region, arch, !gpus ? "-plain" : open_module ? "" : "-old");
}

Asked<Image> find_image(Web& web, Api& api, const ImageWish& wish, bool fresh) {
  const bool plain = wish.given.find_first_not_of("0123456789abcdef", 4) == std::string::npos;
  if (!wish.given.empty() && (!wish.given.starts_with("ami-") || !plain || wish.given.size() > 40))
    return tl::make_unexpected(
        unfit(fmt::format("'{}' cannot be an image of AWS", printable(wish.given, 60)),
              "an image is given by its id, such as --image ami-0123456789abcdef0"));
  const KeptQuestion question{.name = "image-" + wish.text(),
                              .most_age_ms = fresh ? 0 : kDayMs,
                              .ask = [&](Web& own) { return ask_image(own, api, wish); }};
  auto kept = kept_rows(web, api, question);
  if (!kept) return tl::make_unexpected(std::move(kept).error());
  const auto& rows = kept->rows;
  if (rows.size() != 1 || rows[0].size() != 4) {
    // The kept file may be damaged or of another version: ask AWS.
    if (!fresh) return find_image(web, api, wish, true);
    return tl::make_unexpected(unfit("AWS's image has an odd name", ""));
  }
  Image image{.id = rows[0][0],
              .root_device = rows[0][1],
              .min_gb = static_cast<int>(parse_int(rows[0][2]).value_or(0)),
              .arch = rows[0][3]};
  if (image.arch == wish.arch) return image;
  return tl::make_unexpected(unfit(
      fmt::format("the image {} is for {} and the machine has {}", image.id, image.arch, wish.arch),
      "give another with --image, or none"));
}

}  // namespace lockstep::cloud::aws
