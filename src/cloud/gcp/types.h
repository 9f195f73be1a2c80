// What is known of Google's machine types and accelerators beyond what its API says: one table
// each.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>

namespace lockstep::cloud::gcp {

// Machine types that begin alike.
struct Series {
  std::string_view start;  // "a3-megagpu-"
  std::string_view part;   // whose cores and memory are paid: "a3plus"; "": they are in the GPU
  int ssd_gb_per_gpu = 0;  // local disks that come with it, and are billed
  bool hyperdisk = false;  // takes no other disk
  bool arm = false;
  std::string_view only = {};  // why it is not for sale on demand, though it has a price
  int plain_percent = 0;       // it has no GPUs, and so much of its vCPUs is paid; 0: it has some
};

struct Accelerator {
  std::string_view name;                      // "nvidia-tesla-v100"
  std::string_view gpu;                       // canonical (cloud/gpu.h)
  std::array<std::string_view, 3> priced_as;  // in the price list
  std::string_view quota;                     // metric; PREEMPTIBLE_ before it for spot
  // It is added to a machine that has none (n1): the most vCPUs with 1, 2, 4 and 8 of them; 0: not
  // so many.
  std::array<int, 4> most_vcpus = {};

  bool added() const { return most_vcpus[0] > 0; }
};

// nullptr: nothing is known of it.
const Series* series_of(std::string_view type);
const Accelerator* find_accelerator(std::string_view name);
std::span<const Accelerator> accelerators();

// A type as offers have it: "n1-standard-8+nvidia-tesla-v100", as one machine type is sold with
// several accelerators.
struct TypeName {
  std::string machine;
  std::string accelerator;  // "": it has its own
};
TypeName parse_type(std::string_view type);

}  // namespace lockstep::cloud::gcp
