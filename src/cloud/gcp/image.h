// Which image a machine begins with.
#pragma once

#include "cloud/gcp/api.h"
#include "cloud/gpu.h"

#include <string>
#include <string_view>

namespace lockstep::cloud::gcp {

struct Image {
  std::string path;  // "projects/P/global/images/NAME"
  int disk_gb = 0;   // it needs at least so much
};

// What a user names: "projects/P/global/images/[family/]NAME", its URL, "family/NAME" or "NAME" of
// the own project. "": it is none of these.
std::string image_path(std::string_view given, std::string_view project);

// The user's, or one with the driver that the GPU needs. gpu "": one without.
tl::expected<Image, ApiError> find_image(Api& api, Web& web, std::string_view given,
                                         std::string_view gpu, std::string_view arch);

}  // namespace lockstep::cloud::gcp
