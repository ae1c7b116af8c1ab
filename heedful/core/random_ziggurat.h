// The ziggurat of the normal density f(x) = exp(−x²/2) for x ≥ 0: 255 boxes and a base strip with the tail, all of
// the same area v. Box i reaches to kX[i], where the curve is at kF[i]; a draw below kInside[i] / 2^52 of the way is
// inside the curve without looking.
//
//     x₂₅₅ = 3.6541528853610088,  v = 0.004928673233974652,  fᵢ = exp(−xᵢ²/2),  xᵢ = √(−2 log(v/xᵢ₊₁ + fᵢ₊₁)),
//     x₀ = v/f₂₅₅ (the width the base strip would have as a box),  f₀ = 1
//
// every operation rounded to double, so these are the numbers of NumPy's tables; f₃₈ alone stands one unit in the
// last place above the rounded exponential, there as here. The numbers are written out because exp and log of the C
// library differ from one system to the next in exactly such places. random_test.cc checks the recurrence.
//
// Source: Marsaglia & Tsang, The Ziggurat Method for Generating Random Variables, J. Stat. Softw. 5(8), 2000.
#ifndef HEEDFUL_CORE_RANDOM_ZIGGURAT_H_
#define HEEDFUL_CORE_RANDOM_ZIGGURAT_H_

#include <array>
#include <cstddef>
#include <cstdint>

namespace heedful::ziggurat {

inline constexpr double kArea = 0.004928673233974652;
inline constexpr double kTailStart = 3.6541528853610088;          // x₂₅₅
inline constexpr double kInverseTailStart = 0.27366123732975828;  // NumPy's literal, 1/x₂₅₅

// clang-format off
inline constexpr double kX[256] = {
    0x1.f493b7815d979p+1, 0x1.b8d0be3fdf6c6p-3, 0x1.250af3c2c5bb4p-2, 0x1.57cb938443b61p-2,
    0x1.801fce82fa70cp-2, 0x1.a230c2e4cd0bcp-2, 0x1.c004d2f3861f7p-2, 0x1.dac2f5a747274p-2,
    0x1.f32482d4cd5c3p-2, 0x1.04d32278ebbadp-1, 0x1.0f5053b025d43p-1, 0x1.192a697413677p-1,
    0x1.227a28f7a1af5p-1, 0x1.2b52e3863d880p-1, 0x1.33c3fc05791f5p-1, 0x1.3bd9ec1a2b12fp-1,
    0x1.439ef8dff9b55p-1, 0x1.4b1bb363dfea7p-1, 0x1.52575621ad374p-1, 0x1.59580a707ce96p-1,
    0x1.60231cfd97eeap-1, 0x1.66bd261a37c3dp-1, 0x1.6d2a292000570p-1, 0x1.736dad346f8a6p-1,
    0x1.798ad10b32a77p-1, 0x1.7f845ad46f543p-1, 0x1.855cc53430a77p-1, 0x1.8b1649e7b769ap-1,
    0x1.90b2ea94ecf98p-1, 0x1.96347822c1eeap-1, 0x1.9b9c98e38c546p-1, 0x1.a0eccdca4a72cp-1,
    0x1.a62676d77cd59p-1, 0x1.ab4ad6e101630p-1, 0x1.b05b16d136c9cp-1, 0x1.b558487427a29p-1,
    0x1.ba4368e529f3ap-1, 0x1.bf1d62abf8232p-1, 0x1.c3e70f9594ef3p-1, 0x1.c8a13a5323b61p-1,
    0x1.cd4c9fe72268bp-1, 0x1.d1e9f0e80b748p-1, 0x1.d679d29e41f10p-1, 0x1.dafce0023b8c3p-1,
    0x1.df73aa9f17653p-1, 0x1.e3debb5d2edfep-1, 0x1.e83e9337a6f00p-1, 0x1.ec93abdf982cep-1,
    0x1.f0de784f06226p-1, 0x1.f51f654d8f688p-1, 0x1.f956d9e87d7aep-1, 0x1.fd8537dfa2eacp-1,
    0x1.00d56e04234ecp+0, 0x1.02e40f5398f9ap+0, 0x1.04eea9e16a5fcp+0, 0x1.06f565b72a010p+0,
    0x1.08f869071f40bp+0, 0x1.0af7d84bc6113p+0, 0x1.0cf3d664bcc7fp+0, 0x1.0eec84b16086bp+0,
    0x1.10e20329515eep+0, 0x1.12d4707310fbep+0, 0x1.14c3e9f8e9141p+0, 0x1.16b08bfc4201ep+0,
    0x1.189a71a78da34p+0, 0x1.1a81b51ee6d88p+0, 0x1.1c666f8f82acbp+0, 0x1.1e48b93e0d42ep+0,
    0x1.2028a9940a09fp+0, 0x1.2206572c4c6e9p+0, 0x1.23e1d7de9c31fp+0, 0x1.25bb40ca96bfbp+0,
    0x1.2792a661dd37fp+0, 0x1.29681c719d71bp+0, 0x1.2b3bb62b82edap+0, 0x1.2d0d862e1b853p+0,
    0x1.2edd9e8cba98ep+0, 0x1.30ac10d6e48d7p+0, 0x1.3278ee1f4b930p+0, 0x1.3444470265ea1p+0,
    0x1.360e2baca52d5p+0, 0x1.37d6abe05586ap+0, 0x1.399dd6fb2b264p+0, 0x1.3b63bbfb83d03p+0,
    0x1.3d28698561de0p+0, 0x1.3eebede725a83p+0, 0x1.40ae571e09e74p+0, 0x1.426fb2da6745dp+0,
    0x1.44300e83c30a4p+0, 0x1.45ef773cac75dp+0, 0x1.47adf9e66c336p+0, 0x1.496ba32488f2fp+0,
    0x1.4b287f602415dp+0, 0x1.4ce49acb311dcp+0, 0x1.4ea001638a605p+0, 0x1.505abef5e5562p+0,
    0x1.5214df20a8b5ap+0, 0x1.53ce6d56a664fp+0, 0x1.558774e1bb2c8p+0, 0x1.574000e555f78p+0,
    0x1.58f81c60e8514p+0, 0x1.5aafd23241b59p+0, 0x1.5c672d17d733dp+0, 0x1.5e1e37b2f8cd3p+0,
    0x1.5fd4fc89f5e38p+0, 0x1.618b860a31fc3p+0, 0x1.6341de8a2b0a2p+0, 0x1.64f8104b7260bp+0,
    0x1.66ae257c99672p+0, 0x1.6864283b13137p+0, 0x1.6a1a22950b2b1p+0, 0x1.6bd01e8b343bbp+0,
    0x1.6d8626128d352p+0, 0x1.6f3c43161f854p+0, 0x1.70f27f78b68ebp+0, 0x1.72a8e516914c6p+0,
    0x1.745f7dc70eedcp+0, 0x1.7616535e5731fp+0, 0x1.77cd6faeff449p+0, 0x1.7984dc8babd93p+0,
    0x1.7b3ca3c8b1409p+0, 0x1.7cf4cf3db22fbp+0, 0x1.7ead68c73dee7p+0, 0x1.80667a486ea1fp+0,
    0x1.82200dac88676p+0, 0x1.83da2ce899f15p+0, 0x1.8594e1fd1f5bdp+0, 0x1.875036f7a7ec5p+0,
    0x1.890c35f47f72dp+0, 0x1.8ac8e9205c043p+0, 0x1.8c865aba10c9cp+0, 0x1.8e44951446a27p+0,
    0x1.9003a2973b58fp+0, 0x1.91c38dc288347p+0, 0x1.9384612ef0afcp+0, 0x1.954627903a28ap+0,
    0x1.9708ebb70d5eep+0, 0x1.98ccb892e2a31p+0, 0x1.9a919933f99bfp+0, 0x1.9c5798cd5d92cp+0,
    0x1.9e1ec2b6f7411p+0, 0x1.9fe7226fad24ap+0, 0x1.a1b0c39f93692p+0, 0x1.a37bb21a2c85bp+0,
    0x1.a547f9e0bbb88p+0, 0x1.a715a724aa9a4p+0, 0x1.a8e4c64a0313dp+0, 0x1.aab563e9ff108p+0,
    0x1.ac878cd5af5cep+0, 0x1.ae5b4e18bb336p+0, 0x1.b030b4fc3a11ap+0, 0x1.b207cf09a985bp+0,
    0x1.b3e0aa0e00c00p+0, 0x1.b5bb541ce3d03p+0, 0x1.b797db93f8927p+0, 0x1.b9764f1e5f73cp+0,
    0x1.bb56bdb85256ep+0, 0x1.bd3936b2ec0a2p+0, 0x1.bf1dc9b81ae83p+0, 0x1.c10486cec16a0p+0,
    0x1.c2ed7e5f07a2dp+0, 0x1.c4d8c136e0d1cp+0, 0x1.c6c6608ec8705p+0, 0x1.c8b66e0eba617p+0,
    0x1.caa8fbd36a2abp+0, 0x1.cc9e1c73bd690p+0, 0x1.ce95e3068e037p+0, 0x1.d0906328b8f6ep+0,
    0x1.d28db1037ef20p+0, 0x1.d48de1533c647p+0, 0x1.d691096e7f123p+0, 0x1.d8973f4d7fba5p+0,
    0x1.daa0999206e70p+0, 0x1.dcad2f8fc490ep+0, 0x1.debd195522e37p+0, 0x1.e0d06fb49d21cp+0,
    0x1.e2e74c4ea46f6p+0, 0x1.e501c99c1d188p+0, 0x1.e72002f97fe25p+0, 0x1.e94214b2abf0ap+0,
    0x1.eb681c0f76f08p+0, 0x1.ed9237610a73ap+0, 0x1.efc086101eca9p+0, 0x1.f1f328ac25321p+0,
    0x1.f42a40fb74d6dp+0, 0x1.f665f20c90168p+0, 0x1.f8a6604899782p+0, 0x1.faebb187122bfp+0,
    0x1.fd360d22fe785p+0, 0x1.ff859c118f60bp+0, 0x1.00ed447d3a075p+1, 0x1.021a8028fc947p+1,
    0x1.034a983a902abp+1, 0x1.047da4e3ef5c7p+1, 0x1.05b3bf6adb37ep+1, 0x1.06ed023a72668p+1,
    0x1.082988f632e17p+1, 0x1.0969708e8a254p+1, 0x1.0aacd7571c0c4p+1, 0x1.0bf3dd1eed448p+1,
    0x1.0d3ea34aa3d30p+1, 0x1.0e8d4cf116593p+1, 0x1.0fdffefa69fb6p+1, 0x1.1136e04207041p+1,
    0x1.129219bbb5d35p+1, 0x1.13f1d69c4096dp+1, 0x1.1556448602e3bp+1, 0x1.16bf93b9deef3p+1,
    0x1.182df74d21261p+1, 0x1.19a1a564eebacp+1, 0x1.1b1ad777f2f8ep+1, 0x1.1c99ca971a694p+1,
    0x1.1e1ebfbe4ae39p+1, 0x1.1fa9fc2e2d901p+1, 0x1.213bc9d04cc81p+1, 0x1.22d477a6fd3eep+1,
    0x1.24745a4ac9c24p+1, 0x1.261bcc77658e0p+1, 0x1.27cb2faa8592ep+1, 0x1.2982ecd770e78p+1,
    0x1.2b437532a0a52p+1, 0x1.2d0d43196db97p+1, 0x1.2ee0db1a978f5p+1, 0x1.30becd256aeeep+1,
    0x1.32a7b5e68a4a3p+1, 0x1.349c405ae12a3p+1, 0x1.369d27a33a840p+1, 0x1.38ab39256410ap+1,
    0x1.3ac7570ae88fap+1, 0x1.3cf27b31704a6p+1, 0x1.3f2dbaa60f475p+1, 0x1.417a49cb9e5dap+1,
    0x1.43d9815545e94p+1, 0x1.464ce44a73a15p+1, 0x1.48d62759c43bcp+1, 0x1.4b7739d6b5a27p+1,
    0x1.4e3250dcd8902p+1, 0x1.5109f53e9ac41p+1, 0x1.54011523a7e42p+1, 0x1.571b1a94ae41bp+1,
    0x1.5a5c08b718dd9p+1, 0x1.5dc8a243ad0fep+1, 0x1.61669cf861e4cp+1, 0x1.653ce7b006aeap+1,
    0x1.69540be9fe5c3p+1, 0x1.6db6b8d09e232p+1, 0x1.72728f05f7a34p+1, 0x1.7799556090673p+1,
    0x1.7d42df4d6ce8cp+1, 0x1.839030529f234p+1, 0x1.8ab0fbfaa7c14p+1, 0x1.92ee0946f4496p+1,
    0x1.9cbee014057abp+1, 0x1.a8fdc7894775ap+1, 0x1.b981f3878fdb1p+1, 0x1.d3bb48209ad33p+1,
};

inline constexpr double kF[256] = {
    0x1.0000000000000p+0, 0x1.f446ac979f087p-1, 0x1.eb7545b6ca915p-1, 0x1.e3f11e027f077p-1,
    0x1.dd36fa704de95p-1, 0x1.d70920657bcf2p-1, 0x1.d144978a119dcp-1, 0x1.cbd33a8a72debp-1,
    0x1.c6a5ecea9787fp-1, 0x1.c1b1cd9eebaeap-1, 0x1.bceeb4ee1dc82p-1, 0x1.b85653a8ff552p-1,
    0x1.b3e3a8234dd10p-1, 0x1.af92a3f6ce8a2p-1, 0x1.ab5fef17a2504p-1, 0x1.a748bd550c9e1p-1,
    0x1.a34aafdf5af0fp-1, 0x1.9f63bee651fd8p-1, 0x1.9b9228d240681p-1, 0x1.97d4657617ac1p-1,
    0x1.94291c21b7a47p-1, 0x1.908f1bd31714fp-1, 0x1.8d0554fe60aa8p-1, 0x1.898ad48badf02p-1,
    0x1.861ebfc37bcacp-1, 0x1.82c050f56cf6ep-1, 0x1.7f6ed4b20e2cbp-1, 0x1.7c29a779c6858p-1,
    0x1.78f033ca0b0d5p-1, 0x1.75c1f0770d856p-1, 0x1.729e5f43f6d12p-1, 0x1.6f850baea7aeep-1,
    0x1.6c7589e635a89p-1, 0x1.696f75e513b2ap-1, 0x1.667272a92e323p-1, 0x1.637e298550c18p-1,
    0x1.6092498802665p-1, 0x1.5dae86f4aff6ap-1, 0x1.5ad29acc85c89p-1, 0x1.57fe4264c8d8fp-1,
    0x1.55313f08d9e46p-1, 0x1.526b55a656cd5p-1, 0x1.4fac4e820b667p-1, 0x1.4cf3f4f494ec0p-1,
    0x1.4a42172dc5278p-1, 0x1.479685fdf5012p-1, 0x1.44f114a493679p-1, 0x1.425198a355fe3p-1,
    0x1.3fb7e99585b82p-1, 0x1.3d23e10af31a3p-1, 0x1.3a955a662cd0ep-1, 0x1.380c32bda00d5p-1,
    0x1.358848bf550e9p-1, 0x1.33097c9703a35p-1, 0x1.308fafd6438efp-1, 0x1.2e1ac55ea3beep-1,
    0x1.2baaa14d7954ap-1, 0x1.293f28e93cd15p-1, 0x1.26d84290504edp-1, 0x1.2475d5a90db84p-1,
    0x1.2217ca92ff7f2p-1, 0x1.1fbe0a9929620p-1, 0x1.1d687fe549969p-1, 0x1.1b171573fd111p-1,
    0x1.18c9b709b3c50p-1, 0x1.16805128639dap-1, 0x1.143ad105ea99cp-1, 0x1.11f9248311f38p-1,
    0x1.0fbb3a2325913p-1, 0x1.0d810104142a0p-1, 0x1.0b4a68d70d9aep-1, 0x1.091761d995d81p-1,
    0x1.06e7dccf03c36p-1, 0x1.04bbcafa63f2ep-1, 0x1.02931e18b822ap-1, 0x1.006dc85b8cac4p-1,
    0x1.fc9778c7bbda1p-2, 0x1.f859da7a900cap-2, 0x1.f4229cb2f7af3p-2, 0x1.eff1a717e8f95p-2,
    0x1.ebc6e20bd1f54p-2, 0x1.e7a236a4ec3c5p-2, 0x1.e3838ea5f9b85p-2, 0x1.df6ad47763a09p-2,
    0x1.db57f320b56b1p-2, 0x1.d74ad6426de33p-2, 0x1.d3436a1021080p-2, 0x1.cf419b4ae5b6dp-2,
    0x1.cb45573c0a848p-2, 0x1.c74e8bb00d7c7p-2, 0x1.c35d26f1d2cb8p-2, 0x1.bf7117c616a17p-2,
    0x1.bb8a4d6716d91p-2, 0x1.b7a8b7807131bp-2, 0x1.b3cc462b331cap-2, 0x1.aff4e9ea18552p-2,
    0x1.ac2293a5f5a9ep-2, 0x1.a85534aa4d880p-2, 0x1.a48cbea20c04dp-2, 0x1.a0c923946843ep-2,
    0x1.9d0a55e1e93dfp-2, 0x1.995048418c0c6p-2, 0x1.959aedbe09f93p-2, 0x1.91ea39b33cb17p-2,
    0x1.8e3e1fcb9f115p-2, 0x1.8a9693fde9188p-2, 0x1.86f38a8ac5ab6p-2, 0x1.8354f7faa0dd9p-2,
    0x1.7fbad11b8d911p-2, 0x1.7c250aff414b0p-2, 0x1.78939af9252ebp-2, 0x1.7506769c7b1edp-2,
    0x1.717d93ba9614cp-2, 0x1.6df8e86124caap-2, 0x1.6a786ad88de21p-2, 0x1.66fc11a25cbe2p-2,
    0x1.6383d377be515p-2, 0x1.600fa7480d2c8p-2, 0x1.5c9f84376c244p-2, 0x1.5933619d6eebep-2,
    0x1.55cb3703d0100p-2, 0x1.5266fc2533bedp-2, 0x1.4f06a8ebf6d92p-2, 0x1.4baa357109ca2p-2,
    0x1.485199fad6ad4p-2, 0x1.44fccefc324fep-2, 0x1.41abcd1357a19p-2, 0x1.3e5e8d08ed2dbp-2,
    0x1.3b1507cf143aep-2, 0x1.37cf368081379p-2, 0x1.348d125f9d19ep-2, 0x1.314e94d5af62fp-2,
    0x1.2e13b77210766p-2, 0x1.2adc73e963fddp-2, 0x1.27a8c414db11ep-2, 0x1.2478a1f17de89p-2,
    0x1.214c079f7cc9ep-2, 0x1.1e22ef6188116p-2, 0x1.1afd539c2f050p-2, 0x1.17db2ed5454e8p-2,
    0x1.14bc7bb34ee67p-2, 0x1.11a134fcf2423p-2, 0x1.0e895598709c4p-2, 0x1.0b74d88b242dap-2,
    0x1.0863b8f904336p-2, 0x1.0555f2242e9d9p-2, 0x1.024b7f6c7747ep-2, 0x1.fe88b89df93c5p-3,
    0x1.f88108cb83235p-3, 0x1.f27fe6ce998d2p-3, 0x1.ec854a4c99c44p-3, 0x1.e6912b2283cddp-3,
    0x1.e0a3816457184p-3, 0x1.dabc455c7900ap-3, 0x1.d4db6f8b2514fp-3, 0x1.cf00f8a5e6fccp-3,
    0x1.c92cd9971df53p-3, 0x1.c35f0b7d89d47p-3, 0x1.bd9787abe18a1p-3, 0x1.b7d647a8731aap-3,
    0x1.b21b452ccd13ap-3, 0x1.ac667a2571807p-3, 0x1.a6b7e0b19267ep-3, 0x1.a10f7322d7e3dp-3,
    0x1.9b6d2bfd2fe5ap-3, 0x1.95d105f6a7c27p-3, 0x1.903afbf74fa69p-3, 0x1.8aab09192815bp-3,
    0x1.852128a819a38p-3, 0x1.7f9d5621f7175p-3, 0x1.7a1f8d368a323p-3, 0x1.74a7c9c7ab5a6p-3,
    0x1.6f3607e964716p-3, 0x1.69ca43e21f25cp-3, 0x1.64647a2adf19cp-3, 0x1.5f04a76f883f9p-3,
    0x1.59aac88f31d6cp-3, 0x1.5456da9c86835p-3, 0x1.4f08dade31fc1p-3, 0x1.49c0c6cf5ce2dp-3,
    0x1.447e9c20375d5p-3, 0x1.3f4258b6931aep-3, 0x1.3a0bfaae8d7eep-3, 0x1.34db805b4ab88p-3,
    0x1.2fb0e847c2a65p-3, 0x1.2a8c3137a071ap-3, 0x1.256d5a2835eb7p-3, 0x1.2054625183c34p-3,
    0x1.1b41492757d42p-3, 0x1.16340e5a82d63p-3, 0x1.112cb1da26eb9p-3, 0x1.0c2b33d5209bap-3,
    0x1.072f94bb8bf85p-3, 0x1.0239d54067d2ap-3, 0x1.fa93ecb6b222cp-4, 0x1.f0bff29520e1cp-4,
    0x1.e6f7bf29aa54bp-4, 0x1.dd3b56176e88fp-4, 0x1.d38abb9bd91e5p-4, 0x1.c9e5f493b740ap-4,
    0x1.c04d0680b1015p-4, 0x1.b6bff78f2e233p-4, 0x1.ad3ece9caf633p-4, 0x1.a3c9933ea6286p-4,
    0x1.9a604dc9d5b19p-4, 0x1.9103075a4a0abp-4, 0x1.87b1c9dbf2852p-4, 0x1.7e6ca013eefd6p-4,
    0x1.753395aaa1176p-4, 0x1.6c06b73694a4cp-4, 0x1.62e6124854d18p-4, 0x1.59d1b577466a4p-4,
    0x1.50c9b06fa2baep-4, 0x1.47ce1401b2213p-4, 0x1.3edef23269a86p-4, 0x1.35fc5e4d93e70p-4,
    0x1.2d266cf9b3111p-4, 0x1.245d344dd0d91p-4, 0x1.1ba0cbe97897dp-4, 0x1.12f14d0f2179dp-4,
    0x1.0a4ed2c159625p-4, 0x1.01b979e30e497p-4, 0x1.f262c2b6c6e35p-5, 0x1.e16d547b25181p-5,
    0x1.d092efeadf162p-5, 0x1.bfd3e0f282a2cp-5, 0x1.af30790385f70p-5, 0x1.9ea90f9295563p-5,
    0x1.8e3e02a68b5abp-5, 0x1.7defb77af271ep-5, 0x1.6dbe9b398d064p-5, 0x1.5dab23cf2add4p-5,
    0x1.4db5d0e11275dp-5, 0x1.3ddf2ce98eecbp-5, 0x1.2e27ce83df497p-5, 0x1.1e9059f1f6abcp-5,
    0x1.0f1982e968011p-5, 0x1.ff881d718a5c4p-6, 0x1.e121adb828c75p-6, 0x1.c301983cd091ap-6,
    0x1.a529f4e22ebf8p-6, 0x1.879d1b600c10ap-6, 0x1.6a5daf40bbf82p-6, 0x1.4d6eaf2fbb064p-6,
    0x1.30d388dab5e13p-6, 0x1.1490334603012p-6, 0x1.f152a4f72dd49p-7, 0x1.ba48d274f8facp-7,
    0x1.841040d8da478p-7, 0x1.4eb96421acfe0p-7, 0x1.1a59229952f92p-7, 0x1.ce160f8ec6837p-8,
    0x1.69ea8d90cb85dp-8, 0x1.08a1f03b0b1fdp-8, 0x1.55f9f43c1b067p-9, 0x1.4a605b6b9f70fp-10,
};
// clang-format on

// 2^52 · xᵢ₋₁/xᵢ rounded half to even: adding 2^52 leaves no bit below one.
inline constexpr std::array<std::uint64_t, 256> kInside = [] {
  constexpr double kOne = 0x1p52;
  const auto rounded = [](double fraction) { return static_cast<std::uint64_t>((fraction * kOne + kOne) - kOne); };
  std::array<std::uint64_t, 256> inside{};
  inside[0] = rounded(kX[255] / kX[0]);
  inside[1] = 0;
  for (std::size_t i = 2; i < 256; ++i) inside[i] = rounded(kX[i - 1] / kX[i]);
  return inside;
}();

}  // namespace heedful::ziggurat

#endif  // HEEDFUL_CORE_RANDOM_ZIGGURAT_H_
