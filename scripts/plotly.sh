#!/usr/bin/env bash
# The plotting library inside the HTML report, from npm:
#   scripts/plotly.sh check           the file in the repository is the released one
#   scripts/plotly.sh update VERSION  replace it, and the table that says what it is
set -euo pipefail
cd "$(dirname "$0")/../crates/thalweg-gauge/assets"

package=plotly.js-basic-dist-min
recorded() { sed -n "s/^| $1[^|]*| \(.*\) |\$/\1/p" README.md; }
sha256() { sha256sum "$1" | cut -d' ' -f1; }

case ${1:-} in
    check) version=$(recorded version) ;;
    update) version=${2:?which version?} ;;
    *)
        sed -n 's/^#   //p' "$0"
        exit 2
        ;;
esac

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
npm pack --silent --pack-destination "$folder" "$package@$version" >/dev/null
integrity="sha512-$(openssl dgst -sha512 -binary "$folder"/*.tgz | base64 -w0)"
tar -xzf "$folder"/*.tgz -C "$folder"
new=$folder/package

if [[ $1 == update ]]; then
    cp "$new/plotly-basic.min.js" .
    cp "$new/LICENSE" LICENSE.plotly
    sed -i "s,^| version | .*,| version | $version |,
        s,^| package .*,| package (npm \`dist.integrity\`) | $integrity |,
        s,^| \`plotly-basic.min.js\`.*,| \`plotly-basic.min.js\`\, sha256 | $(sha256 plotly-basic.min.js) |," README.md
fi
[[ $(recorded package) == "$integrity" ]] || { echo "plotly: the package is not the recorded one: $integrity" >&2; exit 1; }
[[ $(sha256 plotly-basic.min.js) == "$(sha256 "$new/plotly-basic.min.js")" ]] || { echo "plotly: the file differs from the release" >&2; exit 1; }
[[ $(sha256 plotly-basic.min.js) == "$(recorded '`plotly-basic')" ]] || { echo "plotly: the recorded sha256 is another" >&2; exit 1; }
echo "plotly: $version, as released"
