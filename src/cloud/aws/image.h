// Which image a machine starts from.
#pragma once

#include "cloud/aws/answers.h"
#include "cloud/aws/api.h"

#include <string>

namespace lockstep::cloud::aws {

struct ImageWish {
  std::string region;
  std::string given;  // the user's own: "ami-..."; "": ours
  std::string arch;   // "x86_64", "arm64"
  bool gpus = true;
  bool open_module = true;  // for those GPUs

  std::string text() const;  // the same for the same wish
};

// Kept a day, unless `fresh`. A refusal with Meaning::ours: the user's image won't do.
Asked<Image> find_image(Web& web, Api& api, const ImageWish& wish, bool fresh);

}  // namespace lockstep::cloud::aws
