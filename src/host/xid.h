// NVIDIA's reports of faults in the kernel's log: "NVRM: Xid (PCI:0000:c1:00): 79, ...". Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace lockstep::host {

struct Xid {
  int code = 0;
  std::string pci = {};   // "0000:c1:00", in lower case
  std::string text = {};  // what the driver says behind the code. Printable

  friend bool operator==(const Xid&, const Xid&) = default;
};

// Reads the first line of a record of /dev/kmsg: "PRIORITY,NUMBER,MICROSECONDS,FLAGS;TEXT".
// nullopt: the record is no report, or a program has written it and not the kernel.
std::optional<Xid> parse_xid(std::string_view line);

// "XID 79 on GPU 3 (0000:c1:00): the GPU has fallen off the bus". gpu: nullopt: not known.
std::string xid_words(const Xid& xid, std::optional<int> gpu);

}  // namespace lockstep::host
