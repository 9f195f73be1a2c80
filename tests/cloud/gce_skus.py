"""SKUs of Cloud Billing, made from the parts in the catalog, with the traps of the real list: families with other
names, SKUs of commitments, custom machines and sole tenancy, a spot SKU that says OnDemand, and A4 as one slice."""
import hashlib

CORE = {"E2": "E2 Instance Core", "N1": "N1 Predefined Instance Core", "G2": "G2 Instance Core",
        "G4": "G4 Instance Core", "A2": "A2 Instance Core", "A3": "A3 Instance Core", "A3Plus": "A3Plus Instance Core",
        "A3Ultra": "A3Ultra Instance Core"}
GPUS = {"nvidia-tesla-t4": "Nvidia Tesla T4 GPU", "nvidia-tesla-p100": "Nvidia Tesla P100 GPU",
        "nvidia-tesla-v100": "Nvidia Tesla V100 GPU", "nvidia-l4": "Nvidia L4 GPU",
        "nvidia-rtx-pro-6000": "Nvidia RTX PRO 6000 GPU", "nvidia-tesla-a100": "Nvidia Tesla A100 GPU",
        "nvidia-a100-80gb": "Nvidia Tesla A100 80GB GPU", "nvidia-h100-80gb": "Nvidia H100 80GB GPU",
        "nvidia-h100-mega-80gb": "Nvidia H100 80GB Mega GPU", "nvidia-h200-141gb": "Nvidia H200 141GB GPU",
        "nvidia-b200": "A4 Nvidia B200 (1 gpu slice)"}
DISKS = {"pd-balanced": ("Balanced PD Capacity", "SSD"), "pd-ssd": ("SSD backed PD Capacity", "SSD"),
         "pd-standard": ("Storage PD Capacity", "PDStandard"),
         "hyperdisk-balanced": ("Hyperdisk Balanced Capacity", "HyperdiskBalanced")}


def all_skus(catalog, factor):
    """factor(part, spot): the factor by which a test has changed a price."""
    rows = []
    for region, entry in catalog["regions"].items():
        place = entry["place"]
        for name, (demand, spot) in parts(catalog):
            for kind, price in (("OnDemand", demand), ("Preemptible", spot)):
                price *= entry["factor"] * factor(name[0], kind == "Preemptible")
                rows.append(of_part(name, kind, price, region, place))
        for disk, price in catalog["disk_gb_month"].items():
            text, group = DISKS[disk]
            rows.append(sku(f"{text} in {place}", "Storage", group, "OnDemand", price, region, "GiBy.mo"))
        rows += traps(region, place)
    return rows


def parts(catalog):
    """((key, resource family, group, words on demand), prices)."""
    table = catalog["parts"]
    for family, prices in table["core"].items():
        yield (family, "Compute", "CPU", CORE[family]), prices
        yield (family, "Compute", "RAM", CORE[family].replace("Core", "Ram")), table["ram"][family]
    for gpu, prices in table["gpu"].items():
        yield (gpu, "Compute", "GPU", GPUS[gpu]), prices
    yield ("local-ssd", "Storage", "LocalSSD", "SSD backed Local Storage"), table["local_ssd_gb_month"]


def of_part(name, usage, price, region, place):
    key, family, group, words = name
    unit = {"RAM": "GiBy.h", "LocalSSD": "GiBy.mo"}.get(group, "h")
    if usage == "OnDemand":
        text = f"{words} in {place}" if group == "LocalSSD" else f"{words} running in {place}"
    elif group == "LocalSSD":
        text = f"{words} attached to Spot Preemptible VMs in {place}"
    elif group == "GPU" and key != "nvidia-b200":
        text = f"{words} attached to Spot Preemptible VMs running in {place}"
    else:
        text = f"Spot Preemptible {words} running in {place}"
    # The spot SKU of B200 claims to be on demand: only its text tells.
    says = "OnDemand" if key == "nvidia-b200" else usage
    return sku(text, family, group, says, price, region, unit)


def traps(region, place):
    yield sku(f"Commitment v1: Nvidia Tesla A100 GPU in {place} for 1 Year", "Compute", "GPU", "Commit1Yr", 1.849,
              region)
    yield sku(f"Commitment v1: A2 Cpu in {place} for 3 Year", "Compute", "CPU", "Commit3Yr", 0.011, region)
    yield sku(f"Custom Instance Core running in {place}", "Compute", "CPU", "OnDemand", 0.0331917, region)
    yield sku(f"N1 Sole Tenancy Instance Core running in {place}", "Compute", "CPU", "OnDemand", 0.03477, region)
    yield sku(f"Reserved Nvidia Tesla A100 GPU in {place}", "Compute", "GPU", "OnDemand", 0.00001, region)
    yield sku(f"Nvidia L4 GPU suspended in {place}", "Compute", "GPU", "OnDemand", 0.0001, region)
    yield sku(f"DWS Calendar Mode Nvidia H100 80GB GPU running in {place}", "Compute", "GPU", "OnDemand", 4.2, region)
    yield sku(f"A2 Premium Instance Core running in {place}", "Compute", "CPU", "OnDemand", 0.001, region)
    yield sku(f"Network Internet Egress from {place}", "Network", "PremiumInternetEgress", "OnDemand", 0.12, region,
              "GiBy")


def sku(text, family, group, usage, price, region, unit="h"):
    ident = hashlib.sha256(f"{region} {text}".encode()).hexdigest().upper()
    ident = f"{ident[:4]}-{ident[4:8]}-{ident[8:12]}"
    nanos = round(price * 1e9)
    return {"name": f"services/6F81-5844-456A/skus/{ident}", "skuId": ident, "description": text,
            "category": {"serviceDisplayName": "Compute Engine", "resourceFamily": family, "resourceGroup": group,
                         "usageType": usage},
            "serviceRegions": [region], "serviceProviderName": "Google",
            "geoTaxonomy": {"type": "REGIONAL", "regions": [region]},
            "pricingInfo": [{"summary": "", "currencyConversionRate": 1, "effectiveTime": "2026-11-20T08:00:00Z",
                             "pricingExpression": {
                                 "usageUnit": unit, "displayQuantity": 1, "baseUnit": "s",
                                 "tieredRates": [{"startUsageAmount": 0, "unitPrice": price_of(nanos)}]}}]}


def price_of(nanos):
    return {"currencyCode": "USD", "units": str(nanos // 10 ** 9), "nanos": nanos % 10 ** 9}
