// Chooses the image of a machine.
#pragma once

#include "cloud/aws/answers.h"
#include "cloud/aws/api.h"

#include <string>

namespace lockstep::cloud::aws {

struct ImageWish {
  std::string region;
  std::string given;  // the user's own: "ami-..."; "": we choose
  std::string arch;   // "x86_64", "arm64"
  bool gpus = true;
  bool open_module = true;  // the GPUs work with NVIDIA's open kernel module

  std::string text() const;  // equal for equal wishes
};

// Finds the image. A kept answer of up to a day counts, unless `fresh`. A refusal with
// Meaning::ours says that the user's image does not fit.
Asked<Image> find_image(Web& web, Api& api, const ImageWish& wish, bool fresh);

}  // namespace lockstep::cloud::aws
