#include "cloud/offer.h"

#include <algorithm>

namespace lockstep::cloud {

bool Offer::has_price() const {
  return price.per_hour > 0 && price.per_hour != 700 * kDollar;
}

Micros Offer::per_machine_hour(int disk) const {
  const int paid = std::max({disk, min_disk_gb, disk_gb}) - disk_gb;
  // Round up: a shown price is never below the bill.
  const Micros for_disk = (disk_per_gb_month * paid + kHoursPerMonth - 1) / kHoursPerMonth;
  return price.per_hour + for_disk + address_per_hour + extra_per_hour;
}

}  // namespace lockstep::cloud
