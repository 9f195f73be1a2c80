// Tables of Google's machine types and accelerators, with facts that Google's API does not give.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>

namespace lockstep::cloud::gcp {

// Machine types whose names begin alike.
struct Series {
  std::string_view start;  // "a3-megagpu-"
  std::string_view
      part;  // part name of cores and memory in the price list; "": the GPU includes them
  int ssd_gb_per_gpu = 0;  // local disks that the type always has, billed apart
  bool hyperdisk = false;  // the type takes no other kind of disk
  bool arm = false;
  std::string_view only = {};  // why the type is not for sale on demand, though it has a price
  int plain_percent = 0;       // without GPUs: the billed share of its vCPUs; 0: with GPUs
};

struct Accelerator {
  std::string_view name;                      // "nvidia-tesla-v100"
  std::string_view gpu;                       // canonical (cloud/gpu.h)
  std::array<std::string_view, 3> priced_as;  // in the price list
  std::string_view quota;                     // metric; for spot with PREEMPTIBLE_ before it
  // For GPUs added to an n1 machine: the most vCPUs with 1, 2, 4 and 8 GPUs. 0: Google does not
  // sell that number.
  std::array<int, 4> most_vcpus = {};

  bool added() const { return most_vcpus[0] > 0; }
};

// Find a row; nullptr: unknown.
const Series* series_of(std::string_view type);
const Accelerator* find_accelerator(std::string_view name);
std::span<const Accelerator> accelerators();

// The type of an offer, such as "n1-standard-8+nvidia-tesla-v100": Google sells one machine type
// with several accelerators.
struct TypeName {
  std::string machine;
  std::string accelerator;  // "": the machine type has its own
};
TypeName parse_type(std::string_view type);

}  // namespace lockstep::cloud::gcp
