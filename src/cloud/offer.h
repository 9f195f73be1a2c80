// An offer of a provider: a type of machine in a place, with a price, its source and its age.
// Values only.
#pragma once

#include "cloud/money.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::cloud {

struct Price {
  enum class Source { live, cached, built_in };  // asked in this command; asked earlier; our table

  Micros per_hour = 0;
  Source source = Source::built_in;
  std::int64_t as_of_ms = 0;  // Unix time of the answer, or the table's date
};

enum class Stock { in_stock, unknown, none };

// The way in which a machine's bill ends if its client never returns.
enum class Ending {
  by_itself,   // the machine powers off, or the provider enforces a limit
  with_guard,  // only a client with credentials can terminate it
};

struct Quota {
  std::int64_t limit = 0;
  std::int64_t needed = 0;  // for one machine of this offer
  std::string unit;         // "vCPUs", "GPUs"
  std::string link;         // web page for a higher quota; "": none
};

struct Offer {
  std::string provider;  // "aws"
  std::string region;
  std::string zone = {};     // "": the provider chooses in the region
  std::string zone_id = {};  // the zone's name in every account; "": the same as `zone`
  std::string type;          // the provider's name: "g6.xlarge"
  std::string gpu;           // canonical (gpu.h)
  int gpus = 0;
  int gpu_memory_gb = 0;
  int vcpus = 0;
  int memory_gb = 0;
  int min_disk_gb = 0;  // the image needs this much
  int disk_gb = 0;      // included in the price
  std::string arch = "x86_64";
  bool spot = false;
  int most_nodes = 1 << 20;      // largest gang
  Price price = {};              // of one machine
  Micros disk_per_gb_month = 0;  // for disk beyond disk_gb
  Micros address_per_hour = 0;   // for the public address
  Micros extra_per_hour = 0;     // for parts that the type always has: local SSD
  Stock stock = Stock::unknown;
  std::optional<Quota> quota = {};  // nullopt: unknown
  Ending ending = Ending::by_itself;
  std::string not_for_sale = {};  // why the offer cannot be rented although it has a price
  std::string note = {};          // for people: "capacity block only"
  bool floor_price = false;       // a place without a market: the price means nothing

  // Returns whether the offer has a real price. Catalogs write 0 or 700 dollars for "no price". The
  // price of disk and address alone does not count.
  bool has_price() const;
  // Returns the hourly price of one machine with a disk of `disk` GB (at least min_disk_gb), all
  // in.
  Micros per_machine_hour(int disk) const;
};

// A provider or region that gave no answer, and why.
struct NoAnswer {
  std::string provider;
  std::string region = {};  // "": the whole provider
  std::string why;
  bool no_keys = false;
  // A policy of the account's organization refuses the whole region: nothing can be rented there.
  bool denied = false;
};

struct Catalog {
  std::vector<Offer> offers;
  std::vector<NoAnswer> silent;
};

}  // namespace lockstep::cloud
