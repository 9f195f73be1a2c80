// Chooses the image of a machine.
#pragma once

#include "cloud/gcp/api.h"
#include "cloud/gpu.h"

#include <string>
#include <string_view>

namespace lockstep::cloud::gcp {

struct Image {
  std::string path;  // "projects/P/global/images/NAME"
  int disk_gb = 0;   // smallest disk for this image
};

// Returns the path of an image that a user names: "projects/P/global/images/[family/]NAME", its
// URL, or "family/NAME" or "NAME" of the user's own project. "": none of these.
std::string image_path(std::string_view given, std::string_view project);

// Finds the user's image. If `given` is empty, chooses an image with the driver for the GPU. gpu
// "": an image without a driver.
Asked<Image> find_image(Api& api, Web& web, std::string_view given, std::string_view gpu,
                        std::string_view arch);

}  // namespace lockstep::cloud::gcp
