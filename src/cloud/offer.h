// What a provider offers: a type of machine in a place, with a price that says where it comes from
// and how old it is. Values only.
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
  std::int64_t as_of_ms = 0;  // Unix time: when it was asked, or the table's date
};

enum class Stock { in_stock, unknown, none };

// How a machine ends its own bill when nobody comes back.
enum class Ending {
  by_itself,   // its own power-off ends it, or the provider's limit does
  with_guard,  // only somebody with the keys can
};

struct Quota {
  std::int64_t limit = 0;
  std::int64_t needed = 0;  // for one machine of this offer
  std::string unit;         // "vCPUs", "GPUs"
  std::string link;         // where more is asked for; "" where there is none
};

struct Offer {
  std::string provider;  // "aws"
  std::string region;
  std::string zone = {};     // "": the provider chooses in the region
  std::string zone_id = {};  // the zone's name for all accounts; "" where zone is that
  std::string type;          // the provider's name: "g6.xlarge"
  std::string gpu;           // canonical (gpu.h)
  int gpus = 0;
  int gpu_memory_gb = 0;
  int vcpus = 0;
  int memory_gb = 0;
  int min_disk_gb = 0;  // its image needs so much
  int disk_gb = 0;      // that it comes with, in the price
  std::string arch = "x86_64";
  bool spot = false;
  int most_nodes = 1 << 20;      // of one gang
  Price price = {};              // of one machine
  Micros disk_per_gb_month = 0;  // of a disk beyond what is in the price
  Micros address_per_hour = 0;   // of its public address
  Micros extra_per_hour = 0;     // what comes with the type by a rule: local SSD
  Stock stock = Stock::unknown;
  std::optional<Quota> quota = {};  // nullopt: unknown
  Ending ending = Ending::by_itself;
  std::string not_for_sale = {};  // why it can't be rented although it has a price
  std::string note = {};          // for people: "capacity block only"
  bool floor_price = false;       // no market: the price stands for nothing

  // Catalogs write 0, or 700 dollars, for what has no price. Its rate is unknown then: the disk and
  // the address alone are no price of a machine.
  bool has_price() const;
  // One machine with a disk of so many GB (at least min_disk_gb), all in.
  Micros per_machine_hour(int disk) const;
};

// A provider or region that gave no offers, and why.
struct Silence {
  std::string provider;
  std::string region = {};  // "": all of it
  std::string why;
  bool no_keys = false;
  // A policy of the account's organization refuses the whole region: nothing can be rented there.
  bool denied = false;
};

struct Catalog {
  std::vector<Offer> offers;
  std::vector<Silence> silent;
};

}  // namespace lockstep::cloud
