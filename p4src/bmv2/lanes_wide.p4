// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// Written by p4src/generate_lanes.py: change that, not this.
//
// The slot copy's 352 lanes: one register each. A packet runs at most one of the actions,
// hence one read-modify-write per register. After each action the packet's lanes hold what the
// copy holds.
//
// Lanes are two's complement; registers hold bit<32>, since that is all v1model promises, and
// casts make sum and maximum signed. A lane has saturated exactly where the saturated sum differs
// from the wrapped one.
control Lanes(inout headers_t hdr, inout metadata_t md) {
    register<bit<32>>(SLOT_REGISTER_SIZE) lane000;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane001;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane002;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane003;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane004;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane005;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane006;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane007;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane008;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane009;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane010;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane011;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane012;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane013;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane014;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane015;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane016;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane017;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane018;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane019;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane020;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane021;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane022;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane023;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane024;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane025;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane026;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane027;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane028;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane029;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane030;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane031;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane032;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane033;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane034;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane035;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane036;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane037;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane038;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane039;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane040;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane041;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane042;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane043;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane044;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane045;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane046;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane047;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane048;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane049;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane050;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane051;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane052;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane053;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane054;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane055;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane056;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane057;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane058;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane059;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane060;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane061;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane062;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane063;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane064;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane065;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane066;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane067;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane068;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane069;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane070;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane071;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane072;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane073;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane074;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane075;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane076;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane077;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane078;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane079;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane080;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane081;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane082;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane083;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane084;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane085;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane086;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane087;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane088;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane089;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane090;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane091;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane092;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane093;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane094;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane095;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane096;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane097;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane098;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane099;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane100;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane101;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane102;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane103;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane104;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane105;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane106;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane107;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane108;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane109;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane110;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane111;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane112;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane113;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane114;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane115;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane116;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane117;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane118;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane119;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane120;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane121;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane122;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane123;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane124;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane125;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane126;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane127;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane128;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane129;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane130;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane131;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane132;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane133;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane134;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane135;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane136;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane137;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane138;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane139;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane140;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane141;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane142;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane143;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane144;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane145;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane146;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane147;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane148;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane149;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane150;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane151;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane152;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane153;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane154;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane155;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane156;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane157;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane158;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane159;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane160;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane161;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane162;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane163;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane164;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane165;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane166;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane167;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane168;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane169;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane170;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane171;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane172;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane173;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane174;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane175;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane176;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane177;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane178;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane179;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane180;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane181;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane182;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane183;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane184;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane185;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane186;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane187;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane188;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane189;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane190;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane191;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane192;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane193;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane194;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane195;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane196;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane197;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane198;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane199;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane200;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane201;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane202;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane203;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane204;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane205;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane206;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane207;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane208;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane209;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane210;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane211;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane212;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane213;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane214;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane215;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane216;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane217;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane218;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane219;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane220;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane221;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane222;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane223;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane224;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane225;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane226;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane227;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane228;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane229;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane230;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane231;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane232;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane233;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane234;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane235;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane236;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane237;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane238;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane239;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane240;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane241;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane242;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane243;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane244;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane245;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane246;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane247;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane248;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane249;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane250;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane251;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane252;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane253;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane254;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane255;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane256;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane257;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane258;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane259;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane260;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane261;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane262;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane263;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane264;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane265;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane266;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane267;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane268;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane269;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane270;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane271;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane272;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane273;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane274;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane275;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane276;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane277;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane278;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane279;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane280;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane281;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane282;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane283;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane284;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane285;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane286;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane287;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane288;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane289;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane290;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane291;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane292;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane293;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane294;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane295;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane296;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane297;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane298;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane299;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane300;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane301;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane302;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane303;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane304;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane305;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane306;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane307;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane308;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane309;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane310;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane311;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane312;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane313;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane314;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane315;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane316;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane317;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane318;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane319;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane320;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane321;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane322;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane323;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane324;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane325;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane326;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane327;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane328;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane329;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane330;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane331;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane332;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane333;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane334;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane335;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane336;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane337;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane338;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane339;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane340;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane341;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane342;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane343;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane344;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane345;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane346;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane347;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane348;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane349;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane350;
    register<bit<32>>(SLOT_REGISTER_SIZE) lane351;

    bit<32> held;
    bit<32> wrapped;

    action lanes_overwrite() {
        lane000.write(md.slot_copy, hdr.lanes.v000);
        lane001.write(md.slot_copy, hdr.lanes.v001);
        lane002.write(md.slot_copy, hdr.lanes.v002);
        lane003.write(md.slot_copy, hdr.lanes.v003);
        lane004.write(md.slot_copy, hdr.lanes.v004);
        lane005.write(md.slot_copy, hdr.lanes.v005);
        lane006.write(md.slot_copy, hdr.lanes.v006);
        lane007.write(md.slot_copy, hdr.lanes.v007);
        lane008.write(md.slot_copy, hdr.lanes.v008);
        lane009.write(md.slot_copy, hdr.lanes.v009);
        lane010.write(md.slot_copy, hdr.lanes.v010);
        lane011.write(md.slot_copy, hdr.lanes.v011);
        lane012.write(md.slot_copy, hdr.lanes.v012);
        lane013.write(md.slot_copy, hdr.lanes.v013);
        lane014.write(md.slot_copy, hdr.lanes.v014);
        lane015.write(md.slot_copy, hdr.lanes.v015);
        lane016.write(md.slot_copy, hdr.lanes.v016);
        lane017.write(md.slot_copy, hdr.lanes.v017);
        lane018.write(md.slot_copy, hdr.lanes.v018);
        lane019.write(md.slot_copy, hdr.lanes.v019);
        lane020.write(md.slot_copy, hdr.lanes.v020);
        lane021.write(md.slot_copy, hdr.lanes.v021);
        lane022.write(md.slot_copy, hdr.lanes.v022);
        lane023.write(md.slot_copy, hdr.lanes.v023);
        lane024.write(md.slot_copy, hdr.lanes.v024);
        lane025.write(md.slot_copy, hdr.lanes.v025);
        lane026.write(md.slot_copy, hdr.lanes.v026);
        lane027.write(md.slot_copy, hdr.lanes.v027);
        lane028.write(md.slot_copy, hdr.lanes.v028);
        lane029.write(md.slot_copy, hdr.lanes.v029);
        lane030.write(md.slot_copy, hdr.lanes.v030);
        lane031.write(md.slot_copy, hdr.lanes.v031);
        lane032.write(md.slot_copy, hdr.lanes.v032);
        lane033.write(md.slot_copy, hdr.lanes.v033);
        lane034.write(md.slot_copy, hdr.lanes.v034);
        lane035.write(md.slot_copy, hdr.lanes.v035);
        lane036.write(md.slot_copy, hdr.lanes.v036);
        lane037.write(md.slot_copy, hdr.lanes.v037);
        lane038.write(md.slot_copy, hdr.lanes.v038);
        lane039.write(md.slot_copy, hdr.lanes.v039);
        lane040.write(md.slot_copy, hdr.lanes.v040);
        lane041.write(md.slot_copy, hdr.lanes.v041);
        lane042.write(md.slot_copy, hdr.lanes.v042);
        lane043.write(md.slot_copy, hdr.lanes.v043);
        lane044.write(md.slot_copy, hdr.lanes.v044);
        lane045.write(md.slot_copy, hdr.lanes.v045);
        lane046.write(md.slot_copy, hdr.lanes.v046);
        lane047.write(md.slot_copy, hdr.lanes.v047);
        lane048.write(md.slot_copy, hdr.lanes.v048);
        lane049.write(md.slot_copy, hdr.lanes.v049);
        lane050.write(md.slot_copy, hdr.lanes.v050);
        lane051.write(md.slot_copy, hdr.lanes.v051);
        lane052.write(md.slot_copy, hdr.lanes.v052);
        lane053.write(md.slot_copy, hdr.lanes.v053);
        lane054.write(md.slot_copy, hdr.lanes.v054);
        lane055.write(md.slot_copy, hdr.lanes.v055);
        lane056.write(md.slot_copy, hdr.lanes.v056);
        lane057.write(md.slot_copy, hdr.lanes.v057);
        lane058.write(md.slot_copy, hdr.lanes.v058);
        lane059.write(md.slot_copy, hdr.lanes.v059);
        lane060.write(md.slot_copy, hdr.lanes.v060);
        lane061.write(md.slot_copy, hdr.lanes.v061);
        lane062.write(md.slot_copy, hdr.lanes.v062);
        lane063.write(md.slot_copy, hdr.lanes.v063);
        lane064.write(md.slot_copy, hdr.lanes.v064);
        lane065.write(md.slot_copy, hdr.lanes.v065);
        lane066.write(md.slot_copy, hdr.lanes.v066);
        lane067.write(md.slot_copy, hdr.lanes.v067);
        lane068.write(md.slot_copy, hdr.lanes.v068);
        lane069.write(md.slot_copy, hdr.lanes.v069);
        lane070.write(md.slot_copy, hdr.lanes.v070);
        lane071.write(md.slot_copy, hdr.lanes.v071);
        lane072.write(md.slot_copy, hdr.lanes.v072);
        lane073.write(md.slot_copy, hdr.lanes.v073);
        lane074.write(md.slot_copy, hdr.lanes.v074);
        lane075.write(md.slot_copy, hdr.lanes.v075);
        lane076.write(md.slot_copy, hdr.lanes.v076);
        lane077.write(md.slot_copy, hdr.lanes.v077);
        lane078.write(md.slot_copy, hdr.lanes.v078);
        lane079.write(md.slot_copy, hdr.lanes.v079);
        lane080.write(md.slot_copy, hdr.lanes.v080);
        lane081.write(md.slot_copy, hdr.lanes.v081);
        lane082.write(md.slot_copy, hdr.lanes.v082);
        lane083.write(md.slot_copy, hdr.lanes.v083);
        lane084.write(md.slot_copy, hdr.lanes.v084);
        lane085.write(md.slot_copy, hdr.lanes.v085);
        lane086.write(md.slot_copy, hdr.lanes.v086);
        lane087.write(md.slot_copy, hdr.lanes.v087);
        lane088.write(md.slot_copy, hdr.lanes.v088);
        lane089.write(md.slot_copy, hdr.lanes.v089);
        lane090.write(md.slot_copy, hdr.lanes.v090);
        lane091.write(md.slot_copy, hdr.lanes.v091);
        lane092.write(md.slot_copy, hdr.lanes.v092);
        lane093.write(md.slot_copy, hdr.lanes.v093);
        lane094.write(md.slot_copy, hdr.lanes.v094);
        lane095.write(md.slot_copy, hdr.lanes.v095);
        lane096.write(md.slot_copy, hdr.lanes.v096);
        lane097.write(md.slot_copy, hdr.lanes.v097);
        lane098.write(md.slot_copy, hdr.lanes.v098);
        lane099.write(md.slot_copy, hdr.lanes.v099);
        lane100.write(md.slot_copy, hdr.lanes.v100);
        lane101.write(md.slot_copy, hdr.lanes.v101);
        lane102.write(md.slot_copy, hdr.lanes.v102);
        lane103.write(md.slot_copy, hdr.lanes.v103);
        lane104.write(md.slot_copy, hdr.lanes.v104);
        lane105.write(md.slot_copy, hdr.lanes.v105);
        lane106.write(md.slot_copy, hdr.lanes.v106);
        lane107.write(md.slot_copy, hdr.lanes.v107);
        lane108.write(md.slot_copy, hdr.lanes.v108);
        lane109.write(md.slot_copy, hdr.lanes.v109);
        lane110.write(md.slot_copy, hdr.lanes.v110);
        lane111.write(md.slot_copy, hdr.lanes.v111);
        lane112.write(md.slot_copy, hdr.lanes.v112);
        lane113.write(md.slot_copy, hdr.lanes.v113);
        lane114.write(md.slot_copy, hdr.lanes.v114);
        lane115.write(md.slot_copy, hdr.lanes.v115);
        lane116.write(md.slot_copy, hdr.lanes.v116);
        lane117.write(md.slot_copy, hdr.lanes.v117);
        lane118.write(md.slot_copy, hdr.lanes.v118);
        lane119.write(md.slot_copy, hdr.lanes.v119);
        lane120.write(md.slot_copy, hdr.lanes.v120);
        lane121.write(md.slot_copy, hdr.lanes.v121);
        lane122.write(md.slot_copy, hdr.lanes.v122);
        lane123.write(md.slot_copy, hdr.lanes.v123);
        lane124.write(md.slot_copy, hdr.lanes.v124);
        lane125.write(md.slot_copy, hdr.lanes.v125);
        lane126.write(md.slot_copy, hdr.lanes.v126);
        lane127.write(md.slot_copy, hdr.lanes.v127);
        lane128.write(md.slot_copy, hdr.lanes.v128);
        lane129.write(md.slot_copy, hdr.lanes.v129);
        lane130.write(md.slot_copy, hdr.lanes.v130);
        lane131.write(md.slot_copy, hdr.lanes.v131);
        lane132.write(md.slot_copy, hdr.lanes.v132);
        lane133.write(md.slot_copy, hdr.lanes.v133);
        lane134.write(md.slot_copy, hdr.lanes.v134);
        lane135.write(md.slot_copy, hdr.lanes.v135);
        lane136.write(md.slot_copy, hdr.lanes.v136);
        lane137.write(md.slot_copy, hdr.lanes.v137);
        lane138.write(md.slot_copy, hdr.lanes.v138);
        lane139.write(md.slot_copy, hdr.lanes.v139);
        lane140.write(md.slot_copy, hdr.lanes.v140);
        lane141.write(md.slot_copy, hdr.lanes.v141);
        lane142.write(md.slot_copy, hdr.lanes.v142);
        lane143.write(md.slot_copy, hdr.lanes.v143);
        lane144.write(md.slot_copy, hdr.lanes.v144);
        lane145.write(md.slot_copy, hdr.lanes.v145);
        lane146.write(md.slot_copy, hdr.lanes.v146);
        lane147.write(md.slot_copy, hdr.lanes.v147);
        lane148.write(md.slot_copy, hdr.lanes.v148);
        lane149.write(md.slot_copy, hdr.lanes.v149);
        lane150.write(md.slot_copy, hdr.lanes.v150);
        lane151.write(md.slot_copy, hdr.lanes.v151);
        lane152.write(md.slot_copy, hdr.lanes.v152);
        lane153.write(md.slot_copy, hdr.lanes.v153);
        lane154.write(md.slot_copy, hdr.lanes.v154);
        lane155.write(md.slot_copy, hdr.lanes.v155);
        lane156.write(md.slot_copy, hdr.lanes.v156);
        lane157.write(md.slot_copy, hdr.lanes.v157);
        lane158.write(md.slot_copy, hdr.lanes.v158);
        lane159.write(md.slot_copy, hdr.lanes.v159);
        lane160.write(md.slot_copy, hdr.lanes.v160);
        lane161.write(md.slot_copy, hdr.lanes.v161);
        lane162.write(md.slot_copy, hdr.lanes.v162);
        lane163.write(md.slot_copy, hdr.lanes.v163);
        lane164.write(md.slot_copy, hdr.lanes.v164);
        lane165.write(md.slot_copy, hdr.lanes.v165);
        lane166.write(md.slot_copy, hdr.lanes.v166);
        lane167.write(md.slot_copy, hdr.lanes.v167);
        lane168.write(md.slot_copy, hdr.lanes.v168);
        lane169.write(md.slot_copy, hdr.lanes.v169);
        lane170.write(md.slot_copy, hdr.lanes.v170);
        lane171.write(md.slot_copy, hdr.lanes.v171);
        lane172.write(md.slot_copy, hdr.lanes.v172);
        lane173.write(md.slot_copy, hdr.lanes.v173);
        lane174.write(md.slot_copy, hdr.lanes.v174);
        lane175.write(md.slot_copy, hdr.lanes.v175);
        lane176.write(md.slot_copy, hdr.lanes.v176);
        lane177.write(md.slot_copy, hdr.lanes.v177);
        lane178.write(md.slot_copy, hdr.lanes.v178);
        lane179.write(md.slot_copy, hdr.lanes.v179);
        lane180.write(md.slot_copy, hdr.lanes.v180);
        lane181.write(md.slot_copy, hdr.lanes.v181);
        lane182.write(md.slot_copy, hdr.lanes.v182);
        lane183.write(md.slot_copy, hdr.lanes.v183);
        lane184.write(md.slot_copy, hdr.lanes.v184);
        lane185.write(md.slot_copy, hdr.lanes.v185);
        lane186.write(md.slot_copy, hdr.lanes.v186);
        lane187.write(md.slot_copy, hdr.lanes.v187);
        lane188.write(md.slot_copy, hdr.lanes.v188);
        lane189.write(md.slot_copy, hdr.lanes.v189);
        lane190.write(md.slot_copy, hdr.lanes.v190);
        lane191.write(md.slot_copy, hdr.lanes.v191);
        lane192.write(md.slot_copy, hdr.lanes.v192);
        lane193.write(md.slot_copy, hdr.lanes.v193);
        lane194.write(md.slot_copy, hdr.lanes.v194);
        lane195.write(md.slot_copy, hdr.lanes.v195);
        lane196.write(md.slot_copy, hdr.lanes.v196);
        lane197.write(md.slot_copy, hdr.lanes.v197);
        lane198.write(md.slot_copy, hdr.lanes.v198);
        lane199.write(md.slot_copy, hdr.lanes.v199);
        lane200.write(md.slot_copy, hdr.lanes.v200);
        lane201.write(md.slot_copy, hdr.lanes.v201);
        lane202.write(md.slot_copy, hdr.lanes.v202);
        lane203.write(md.slot_copy, hdr.lanes.v203);
        lane204.write(md.slot_copy, hdr.lanes.v204);
        lane205.write(md.slot_copy, hdr.lanes.v205);
        lane206.write(md.slot_copy, hdr.lanes.v206);
        lane207.write(md.slot_copy, hdr.lanes.v207);
        lane208.write(md.slot_copy, hdr.lanes.v208);
        lane209.write(md.slot_copy, hdr.lanes.v209);
        lane210.write(md.slot_copy, hdr.lanes.v210);
        lane211.write(md.slot_copy, hdr.lanes.v211);
        lane212.write(md.slot_copy, hdr.lanes.v212);
        lane213.write(md.slot_copy, hdr.lanes.v213);
        lane214.write(md.slot_copy, hdr.lanes.v214);
        lane215.write(md.slot_copy, hdr.lanes.v215);
        lane216.write(md.slot_copy, hdr.lanes.v216);
        lane217.write(md.slot_copy, hdr.lanes.v217);
        lane218.write(md.slot_copy, hdr.lanes.v218);
        lane219.write(md.slot_copy, hdr.lanes.v219);
        lane220.write(md.slot_copy, hdr.lanes.v220);
        lane221.write(md.slot_copy, hdr.lanes.v221);
        lane222.write(md.slot_copy, hdr.lanes.v222);
        lane223.write(md.slot_copy, hdr.lanes.v223);
        lane224.write(md.slot_copy, hdr.lanes.v224);
        lane225.write(md.slot_copy, hdr.lanes.v225);
        lane226.write(md.slot_copy, hdr.lanes.v226);
        lane227.write(md.slot_copy, hdr.lanes.v227);
        lane228.write(md.slot_copy, hdr.lanes.v228);
        lane229.write(md.slot_copy, hdr.lanes.v229);
        lane230.write(md.slot_copy, hdr.lanes.v230);
        lane231.write(md.slot_copy, hdr.lanes.v231);
        lane232.write(md.slot_copy, hdr.lanes.v232);
        lane233.write(md.slot_copy, hdr.lanes.v233);
        lane234.write(md.slot_copy, hdr.lanes.v234);
        lane235.write(md.slot_copy, hdr.lanes.v235);
        lane236.write(md.slot_copy, hdr.lanes.v236);
        lane237.write(md.slot_copy, hdr.lanes.v237);
        lane238.write(md.slot_copy, hdr.lanes.v238);
        lane239.write(md.slot_copy, hdr.lanes.v239);
        lane240.write(md.slot_copy, hdr.lanes.v240);
        lane241.write(md.slot_copy, hdr.lanes.v241);
        lane242.write(md.slot_copy, hdr.lanes.v242);
        lane243.write(md.slot_copy, hdr.lanes.v243);
        lane244.write(md.slot_copy, hdr.lanes.v244);
        lane245.write(md.slot_copy, hdr.lanes.v245);
        lane246.write(md.slot_copy, hdr.lanes.v246);
        lane247.write(md.slot_copy, hdr.lanes.v247);
        lane248.write(md.slot_copy, hdr.lanes.v248);
        lane249.write(md.slot_copy, hdr.lanes.v249);
        lane250.write(md.slot_copy, hdr.lanes.v250);
        lane251.write(md.slot_copy, hdr.lanes.v251);
        lane252.write(md.slot_copy, hdr.lanes.v252);
        lane253.write(md.slot_copy, hdr.lanes.v253);
        lane254.write(md.slot_copy, hdr.lanes.v254);
        lane255.write(md.slot_copy, hdr.lanes.v255);
        lane256.write(md.slot_copy, hdr.lanes.v256);
        lane257.write(md.slot_copy, hdr.lanes.v257);
        lane258.write(md.slot_copy, hdr.lanes.v258);
        lane259.write(md.slot_copy, hdr.lanes.v259);
        lane260.write(md.slot_copy, hdr.lanes.v260);
        lane261.write(md.slot_copy, hdr.lanes.v261);
        lane262.write(md.slot_copy, hdr.lanes.v262);
        lane263.write(md.slot_copy, hdr.lanes.v263);
        lane264.write(md.slot_copy, hdr.lanes.v264);
        lane265.write(md.slot_copy, hdr.lanes.v265);
        lane266.write(md.slot_copy, hdr.lanes.v266);
        lane267.write(md.slot_copy, hdr.lanes.v267);
        lane268.write(md.slot_copy, hdr.lanes.v268);
        lane269.write(md.slot_copy, hdr.lanes.v269);
        lane270.write(md.slot_copy, hdr.lanes.v270);
        lane271.write(md.slot_copy, hdr.lanes.v271);
        lane272.write(md.slot_copy, hdr.lanes.v272);
        lane273.write(md.slot_copy, hdr.lanes.v273);
        lane274.write(md.slot_copy, hdr.lanes.v274);
        lane275.write(md.slot_copy, hdr.lanes.v275);
        lane276.write(md.slot_copy, hdr.lanes.v276);
        lane277.write(md.slot_copy, hdr.lanes.v277);
        lane278.write(md.slot_copy, hdr.lanes.v278);
        lane279.write(md.slot_copy, hdr.lanes.v279);
        lane280.write(md.slot_copy, hdr.lanes.v280);
        lane281.write(md.slot_copy, hdr.lanes.v281);
        lane282.write(md.slot_copy, hdr.lanes.v282);
        lane283.write(md.slot_copy, hdr.lanes.v283);
        lane284.write(md.slot_copy, hdr.lanes.v284);
        lane285.write(md.slot_copy, hdr.lanes.v285);
        lane286.write(md.slot_copy, hdr.lanes.v286);
        lane287.write(md.slot_copy, hdr.lanes.v287);
        lane288.write(md.slot_copy, hdr.lanes.v288);
        lane289.write(md.slot_copy, hdr.lanes.v289);
        lane290.write(md.slot_copy, hdr.lanes.v290);
        lane291.write(md.slot_copy, hdr.lanes.v291);
        lane292.write(md.slot_copy, hdr.lanes.v292);
        lane293.write(md.slot_copy, hdr.lanes.v293);
        lane294.write(md.slot_copy, hdr.lanes.v294);
        lane295.write(md.slot_copy, hdr.lanes.v295);
        lane296.write(md.slot_copy, hdr.lanes.v296);
        lane297.write(md.slot_copy, hdr.lanes.v297);
        lane298.write(md.slot_copy, hdr.lanes.v298);
        lane299.write(md.slot_copy, hdr.lanes.v299);
        lane300.write(md.slot_copy, hdr.lanes.v300);
        lane301.write(md.slot_copy, hdr.lanes.v301);
        lane302.write(md.slot_copy, hdr.lanes.v302);
        lane303.write(md.slot_copy, hdr.lanes.v303);
        lane304.write(md.slot_copy, hdr.lanes.v304);
        lane305.write(md.slot_copy, hdr.lanes.v305);
        lane306.write(md.slot_copy, hdr.lanes.v306);
        lane307.write(md.slot_copy, hdr.lanes.v307);
        lane308.write(md.slot_copy, hdr.lanes.v308);
        lane309.write(md.slot_copy, hdr.lanes.v309);
        lane310.write(md.slot_copy, hdr.lanes.v310);
        lane311.write(md.slot_copy, hdr.lanes.v311);
        lane312.write(md.slot_copy, hdr.lanes.v312);
        lane313.write(md.slot_copy, hdr.lanes.v313);
        lane314.write(md.slot_copy, hdr.lanes.v314);
        lane315.write(md.slot_copy, hdr.lanes.v315);
        lane316.write(md.slot_copy, hdr.lanes.v316);
        lane317.write(md.slot_copy, hdr.lanes.v317);
        lane318.write(md.slot_copy, hdr.lanes.v318);
        lane319.write(md.slot_copy, hdr.lanes.v319);
        lane320.write(md.slot_copy, hdr.lanes.v320);
        lane321.write(md.slot_copy, hdr.lanes.v321);
        lane322.write(md.slot_copy, hdr.lanes.v322);
        lane323.write(md.slot_copy, hdr.lanes.v323);
        lane324.write(md.slot_copy, hdr.lanes.v324);
        lane325.write(md.slot_copy, hdr.lanes.v325);
        lane326.write(md.slot_copy, hdr.lanes.v326);
        lane327.write(md.slot_copy, hdr.lanes.v327);
        lane328.write(md.slot_copy, hdr.lanes.v328);
        lane329.write(md.slot_copy, hdr.lanes.v329);
        lane330.write(md.slot_copy, hdr.lanes.v330);
        lane331.write(md.slot_copy, hdr.lanes.v331);
        lane332.write(md.slot_copy, hdr.lanes.v332);
        lane333.write(md.slot_copy, hdr.lanes.v333);
        lane334.write(md.slot_copy, hdr.lanes.v334);
        lane335.write(md.slot_copy, hdr.lanes.v335);
        lane336.write(md.slot_copy, hdr.lanes.v336);
        lane337.write(md.slot_copy, hdr.lanes.v337);
        lane338.write(md.slot_copy, hdr.lanes.v338);
        lane339.write(md.slot_copy, hdr.lanes.v339);
        lane340.write(md.slot_copy, hdr.lanes.v340);
        lane341.write(md.slot_copy, hdr.lanes.v341);
        lane342.write(md.slot_copy, hdr.lanes.v342);
        lane343.write(md.slot_copy, hdr.lanes.v343);
        lane344.write(md.slot_copy, hdr.lanes.v344);
        lane345.write(md.slot_copy, hdr.lanes.v345);
        lane346.write(md.slot_copy, hdr.lanes.v346);
        lane347.write(md.slot_copy, hdr.lanes.v347);
        lane348.write(md.slot_copy, hdr.lanes.v348);
        lane349.write(md.slot_copy, hdr.lanes.v349);
        lane350.write(md.slot_copy, hdr.lanes.v350);
        lane351.write(md.slot_copy, hdr.lanes.v351);
    }

    action lanes_add() {
        lane000.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v000;
        hdr.lanes.v000 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v000);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v000);
        lane000.write(md.slot_copy, hdr.lanes.v000);
        lane001.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v001;
        hdr.lanes.v001 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v001);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v001);
        lane001.write(md.slot_copy, hdr.lanes.v001);
        lane002.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v002;
        hdr.lanes.v002 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v002);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v002);
        lane002.write(md.slot_copy, hdr.lanes.v002);
        lane003.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v003;
        hdr.lanes.v003 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v003);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v003);
        lane003.write(md.slot_copy, hdr.lanes.v003);
        lane004.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v004;
        hdr.lanes.v004 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v004);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v004);
        lane004.write(md.slot_copy, hdr.lanes.v004);
        lane005.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v005;
        hdr.lanes.v005 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v005);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v005);
        lane005.write(md.slot_copy, hdr.lanes.v005);
        lane006.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v006;
        hdr.lanes.v006 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v006);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v006);
        lane006.write(md.slot_copy, hdr.lanes.v006);
        lane007.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v007;
        hdr.lanes.v007 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v007);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v007);
        lane007.write(md.slot_copy, hdr.lanes.v007);
        lane008.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v008;
        hdr.lanes.v008 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v008);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v008);
        lane008.write(md.slot_copy, hdr.lanes.v008);
        lane009.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v009;
        hdr.lanes.v009 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v009);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v009);
        lane009.write(md.slot_copy, hdr.lanes.v009);
        lane010.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v010;
        hdr.lanes.v010 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v010);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v010);
        lane010.write(md.slot_copy, hdr.lanes.v010);
        lane011.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v011;
        hdr.lanes.v011 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v011);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v011);
        lane011.write(md.slot_copy, hdr.lanes.v011);
        lane012.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v012;
        hdr.lanes.v012 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v012);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v012);
        lane012.write(md.slot_copy, hdr.lanes.v012);
        lane013.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v013;
        hdr.lanes.v013 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v013);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v013);
        lane013.write(md.slot_copy, hdr.lanes.v013);
        lane014.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v014;
        hdr.lanes.v014 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v014);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v014);
        lane014.write(md.slot_copy, hdr.lanes.v014);
        lane015.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v015;
        hdr.lanes.v015 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v015);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v015);
        lane015.write(md.slot_copy, hdr.lanes.v015);
        lane016.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v016;
        hdr.lanes.v016 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v016);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v016);
        lane016.write(md.slot_copy, hdr.lanes.v016);
        lane017.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v017;
        hdr.lanes.v017 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v017);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v017);
        lane017.write(md.slot_copy, hdr.lanes.v017);
        lane018.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v018;
        hdr.lanes.v018 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v018);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v018);
        lane018.write(md.slot_copy, hdr.lanes.v018);
        lane019.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v019;
        hdr.lanes.v019 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v019);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v019);
        lane019.write(md.slot_copy, hdr.lanes.v019);
        lane020.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v020;
        hdr.lanes.v020 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v020);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v020);
        lane020.write(md.slot_copy, hdr.lanes.v020);
        lane021.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v021;
        hdr.lanes.v021 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v021);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v021);
        lane021.write(md.slot_copy, hdr.lanes.v021);
        lane022.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v022;
        hdr.lanes.v022 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v022);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v022);
        lane022.write(md.slot_copy, hdr.lanes.v022);
        lane023.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v023;
        hdr.lanes.v023 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v023);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v023);
        lane023.write(md.slot_copy, hdr.lanes.v023);
        lane024.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v024;
        hdr.lanes.v024 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v024);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v024);
        lane024.write(md.slot_copy, hdr.lanes.v024);
        lane025.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v025;
        hdr.lanes.v025 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v025);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v025);
        lane025.write(md.slot_copy, hdr.lanes.v025);
        lane026.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v026;
        hdr.lanes.v026 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v026);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v026);
        lane026.write(md.slot_copy, hdr.lanes.v026);
        lane027.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v027;
        hdr.lanes.v027 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v027);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v027);
        lane027.write(md.slot_copy, hdr.lanes.v027);
        lane028.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v028;
        hdr.lanes.v028 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v028);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v028);
        lane028.write(md.slot_copy, hdr.lanes.v028);
        lane029.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v029;
        hdr.lanes.v029 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v029);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v029);
        lane029.write(md.slot_copy, hdr.lanes.v029);
        lane030.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v030;
        hdr.lanes.v030 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v030);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v030);
        lane030.write(md.slot_copy, hdr.lanes.v030);
        lane031.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v031;
        hdr.lanes.v031 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v031);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v031);
        lane031.write(md.slot_copy, hdr.lanes.v031);
        lane032.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v032;
        hdr.lanes.v032 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v032);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v032);
        lane032.write(md.slot_copy, hdr.lanes.v032);
        lane033.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v033;
        hdr.lanes.v033 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v033);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v033);
        lane033.write(md.slot_copy, hdr.lanes.v033);
        lane034.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v034;
        hdr.lanes.v034 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v034);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v034);
        lane034.write(md.slot_copy, hdr.lanes.v034);
        lane035.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v035;
        hdr.lanes.v035 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v035);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v035);
        lane035.write(md.slot_copy, hdr.lanes.v035);
        lane036.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v036;
        hdr.lanes.v036 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v036);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v036);
        lane036.write(md.slot_copy, hdr.lanes.v036);
        lane037.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v037;
        hdr.lanes.v037 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v037);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v037);
        lane037.write(md.slot_copy, hdr.lanes.v037);
        lane038.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v038;
        hdr.lanes.v038 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v038);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v038);
        lane038.write(md.slot_copy, hdr.lanes.v038);
        lane039.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v039;
        hdr.lanes.v039 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v039);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v039);
        lane039.write(md.slot_copy, hdr.lanes.v039);
        lane040.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v040;
        hdr.lanes.v040 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v040);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v040);
        lane040.write(md.slot_copy, hdr.lanes.v040);
        lane041.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v041;
        hdr.lanes.v041 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v041);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v041);
        lane041.write(md.slot_copy, hdr.lanes.v041);
        lane042.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v042;
        hdr.lanes.v042 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v042);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v042);
        lane042.write(md.slot_copy, hdr.lanes.v042);
        lane043.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v043;
        hdr.lanes.v043 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v043);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v043);
        lane043.write(md.slot_copy, hdr.lanes.v043);
        lane044.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v044;
        hdr.lanes.v044 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v044);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v044);
        lane044.write(md.slot_copy, hdr.lanes.v044);
        lane045.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v045;
        hdr.lanes.v045 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v045);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v045);
        lane045.write(md.slot_copy, hdr.lanes.v045);
        lane046.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v046;
        hdr.lanes.v046 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v046);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v046);
        lane046.write(md.slot_copy, hdr.lanes.v046);
        lane047.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v047;
        hdr.lanes.v047 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v047);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v047);
        lane047.write(md.slot_copy, hdr.lanes.v047);
        lane048.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v048;
        hdr.lanes.v048 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v048);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v048);
        lane048.write(md.slot_copy, hdr.lanes.v048);
        lane049.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v049;
        hdr.lanes.v049 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v049);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v049);
        lane049.write(md.slot_copy, hdr.lanes.v049);
        lane050.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v050;
        hdr.lanes.v050 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v050);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v050);
        lane050.write(md.slot_copy, hdr.lanes.v050);
        lane051.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v051;
        hdr.lanes.v051 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v051);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v051);
        lane051.write(md.slot_copy, hdr.lanes.v051);
        lane052.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v052;
        hdr.lanes.v052 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v052);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v052);
        lane052.write(md.slot_copy, hdr.lanes.v052);
        lane053.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v053;
        hdr.lanes.v053 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v053);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v053);
        lane053.write(md.slot_copy, hdr.lanes.v053);
        lane054.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v054;
        hdr.lanes.v054 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v054);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v054);
        lane054.write(md.slot_copy, hdr.lanes.v054);
        lane055.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v055;
        hdr.lanes.v055 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v055);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v055);
        lane055.write(md.slot_copy, hdr.lanes.v055);
        lane056.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v056;
        hdr.lanes.v056 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v056);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v056);
        lane056.write(md.slot_copy, hdr.lanes.v056);
        lane057.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v057;
        hdr.lanes.v057 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v057);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v057);
        lane057.write(md.slot_copy, hdr.lanes.v057);
        lane058.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v058;
        hdr.lanes.v058 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v058);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v058);
        lane058.write(md.slot_copy, hdr.lanes.v058);
        lane059.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v059;
        hdr.lanes.v059 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v059);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v059);
        lane059.write(md.slot_copy, hdr.lanes.v059);
        lane060.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v060;
        hdr.lanes.v060 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v060);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v060);
        lane060.write(md.slot_copy, hdr.lanes.v060);
        lane061.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v061;
        hdr.lanes.v061 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v061);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v061);
        lane061.write(md.slot_copy, hdr.lanes.v061);
        lane062.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v062;
        hdr.lanes.v062 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v062);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v062);
        lane062.write(md.slot_copy, hdr.lanes.v062);
        lane063.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v063;
        hdr.lanes.v063 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v063);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v063);
        lane063.write(md.slot_copy, hdr.lanes.v063);
        lane064.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v064;
        hdr.lanes.v064 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v064);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v064);
        lane064.write(md.slot_copy, hdr.lanes.v064);
        lane065.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v065;
        hdr.lanes.v065 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v065);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v065);
        lane065.write(md.slot_copy, hdr.lanes.v065);
        lane066.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v066;
        hdr.lanes.v066 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v066);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v066);
        lane066.write(md.slot_copy, hdr.lanes.v066);
        lane067.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v067;
        hdr.lanes.v067 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v067);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v067);
        lane067.write(md.slot_copy, hdr.lanes.v067);
        lane068.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v068;
        hdr.lanes.v068 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v068);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v068);
        lane068.write(md.slot_copy, hdr.lanes.v068);
        lane069.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v069;
        hdr.lanes.v069 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v069);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v069);
        lane069.write(md.slot_copy, hdr.lanes.v069);
        lane070.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v070;
        hdr.lanes.v070 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v070);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v070);
        lane070.write(md.slot_copy, hdr.lanes.v070);
        lane071.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v071;
        hdr.lanes.v071 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v071);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v071);
        lane071.write(md.slot_copy, hdr.lanes.v071);
        lane072.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v072;
        hdr.lanes.v072 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v072);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v072);
        lane072.write(md.slot_copy, hdr.lanes.v072);
        lane073.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v073;
        hdr.lanes.v073 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v073);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v073);
        lane073.write(md.slot_copy, hdr.lanes.v073);
        lane074.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v074;
        hdr.lanes.v074 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v074);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v074);
        lane074.write(md.slot_copy, hdr.lanes.v074);
        lane075.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v075;
        hdr.lanes.v075 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v075);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v075);
        lane075.write(md.slot_copy, hdr.lanes.v075);
        lane076.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v076;
        hdr.lanes.v076 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v076);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v076);
        lane076.write(md.slot_copy, hdr.lanes.v076);
        lane077.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v077;
        hdr.lanes.v077 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v077);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v077);
        lane077.write(md.slot_copy, hdr.lanes.v077);
        lane078.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v078;
        hdr.lanes.v078 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v078);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v078);
        lane078.write(md.slot_copy, hdr.lanes.v078);
        lane079.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v079;
        hdr.lanes.v079 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v079);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v079);
        lane079.write(md.slot_copy, hdr.lanes.v079);
        lane080.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v080;
        hdr.lanes.v080 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v080);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v080);
        lane080.write(md.slot_copy, hdr.lanes.v080);
        lane081.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v081;
        hdr.lanes.v081 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v081);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v081);
        lane081.write(md.slot_copy, hdr.lanes.v081);
        lane082.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v082;
        hdr.lanes.v082 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v082);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v082);
        lane082.write(md.slot_copy, hdr.lanes.v082);
        lane083.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v083;
        hdr.lanes.v083 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v083);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v083);
        lane083.write(md.slot_copy, hdr.lanes.v083);
        lane084.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v084;
        hdr.lanes.v084 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v084);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v084);
        lane084.write(md.slot_copy, hdr.lanes.v084);
        lane085.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v085;
        hdr.lanes.v085 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v085);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v085);
        lane085.write(md.slot_copy, hdr.lanes.v085);
        lane086.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v086;
        hdr.lanes.v086 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v086);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v086);
        lane086.write(md.slot_copy, hdr.lanes.v086);
        lane087.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v087;
        hdr.lanes.v087 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v087);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v087);
        lane087.write(md.slot_copy, hdr.lanes.v087);
        lane088.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v088;
        hdr.lanes.v088 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v088);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v088);
        lane088.write(md.slot_copy, hdr.lanes.v088);
        lane089.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v089;
        hdr.lanes.v089 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v089);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v089);
        lane089.write(md.slot_copy, hdr.lanes.v089);
        lane090.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v090;
        hdr.lanes.v090 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v090);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v090);
        lane090.write(md.slot_copy, hdr.lanes.v090);
        lane091.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v091;
        hdr.lanes.v091 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v091);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v091);
        lane091.write(md.slot_copy, hdr.lanes.v091);
        lane092.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v092;
        hdr.lanes.v092 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v092);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v092);
        lane092.write(md.slot_copy, hdr.lanes.v092);
        lane093.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v093;
        hdr.lanes.v093 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v093);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v093);
        lane093.write(md.slot_copy, hdr.lanes.v093);
        lane094.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v094;
        hdr.lanes.v094 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v094);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v094);
        lane094.write(md.slot_copy, hdr.lanes.v094);
        lane095.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v095;
        hdr.lanes.v095 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v095);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v095);
        lane095.write(md.slot_copy, hdr.lanes.v095);
        lane096.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v096;
        hdr.lanes.v096 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v096);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v096);
        lane096.write(md.slot_copy, hdr.lanes.v096);
        lane097.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v097;
        hdr.lanes.v097 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v097);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v097);
        lane097.write(md.slot_copy, hdr.lanes.v097);
        lane098.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v098;
        hdr.lanes.v098 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v098);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v098);
        lane098.write(md.slot_copy, hdr.lanes.v098);
        lane099.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v099;
        hdr.lanes.v099 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v099);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v099);
        lane099.write(md.slot_copy, hdr.lanes.v099);
        lane100.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v100;
        hdr.lanes.v100 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v100);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v100);
        lane100.write(md.slot_copy, hdr.lanes.v100);
        lane101.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v101;
        hdr.lanes.v101 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v101);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v101);
        lane101.write(md.slot_copy, hdr.lanes.v101);
        lane102.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v102;
        hdr.lanes.v102 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v102);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v102);
        lane102.write(md.slot_copy, hdr.lanes.v102);
        lane103.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v103;
        hdr.lanes.v103 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v103);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v103);
        lane103.write(md.slot_copy, hdr.lanes.v103);
        lane104.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v104;
        hdr.lanes.v104 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v104);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v104);
        lane104.write(md.slot_copy, hdr.lanes.v104);
        lane105.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v105;
        hdr.lanes.v105 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v105);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v105);
        lane105.write(md.slot_copy, hdr.lanes.v105);
        lane106.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v106;
        hdr.lanes.v106 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v106);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v106);
        lane106.write(md.slot_copy, hdr.lanes.v106);
        lane107.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v107;
        hdr.lanes.v107 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v107);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v107);
        lane107.write(md.slot_copy, hdr.lanes.v107);
        lane108.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v108;
        hdr.lanes.v108 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v108);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v108);
        lane108.write(md.slot_copy, hdr.lanes.v108);
        lane109.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v109;
        hdr.lanes.v109 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v109);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v109);
        lane109.write(md.slot_copy, hdr.lanes.v109);
        lane110.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v110;
        hdr.lanes.v110 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v110);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v110);
        lane110.write(md.slot_copy, hdr.lanes.v110);
        lane111.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v111;
        hdr.lanes.v111 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v111);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v111);
        lane111.write(md.slot_copy, hdr.lanes.v111);
        lane112.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v112;
        hdr.lanes.v112 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v112);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v112);
        lane112.write(md.slot_copy, hdr.lanes.v112);
        lane113.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v113;
        hdr.lanes.v113 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v113);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v113);
        lane113.write(md.slot_copy, hdr.lanes.v113);
        lane114.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v114;
        hdr.lanes.v114 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v114);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v114);
        lane114.write(md.slot_copy, hdr.lanes.v114);
        lane115.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v115;
        hdr.lanes.v115 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v115);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v115);
        lane115.write(md.slot_copy, hdr.lanes.v115);
        lane116.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v116;
        hdr.lanes.v116 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v116);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v116);
        lane116.write(md.slot_copy, hdr.lanes.v116);
        lane117.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v117;
        hdr.lanes.v117 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v117);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v117);
        lane117.write(md.slot_copy, hdr.lanes.v117);
        lane118.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v118;
        hdr.lanes.v118 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v118);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v118);
        lane118.write(md.slot_copy, hdr.lanes.v118);
        lane119.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v119;
        hdr.lanes.v119 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v119);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v119);
        lane119.write(md.slot_copy, hdr.lanes.v119);
        lane120.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v120;
        hdr.lanes.v120 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v120);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v120);
        lane120.write(md.slot_copy, hdr.lanes.v120);
        lane121.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v121;
        hdr.lanes.v121 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v121);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v121);
        lane121.write(md.slot_copy, hdr.lanes.v121);
        lane122.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v122;
        hdr.lanes.v122 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v122);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v122);
        lane122.write(md.slot_copy, hdr.lanes.v122);
        lane123.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v123;
        hdr.lanes.v123 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v123);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v123);
        lane123.write(md.slot_copy, hdr.lanes.v123);
        lane124.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v124;
        hdr.lanes.v124 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v124);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v124);
        lane124.write(md.slot_copy, hdr.lanes.v124);
        lane125.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v125;
        hdr.lanes.v125 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v125);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v125);
        lane125.write(md.slot_copy, hdr.lanes.v125);
        lane126.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v126;
        hdr.lanes.v126 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v126);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v126);
        lane126.write(md.slot_copy, hdr.lanes.v126);
        lane127.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v127;
        hdr.lanes.v127 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v127);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v127);
        lane127.write(md.slot_copy, hdr.lanes.v127);
        lane128.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v128;
        hdr.lanes.v128 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v128);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v128);
        lane128.write(md.slot_copy, hdr.lanes.v128);
        lane129.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v129;
        hdr.lanes.v129 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v129);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v129);
        lane129.write(md.slot_copy, hdr.lanes.v129);
        lane130.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v130;
        hdr.lanes.v130 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v130);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v130);
        lane130.write(md.slot_copy, hdr.lanes.v130);
        lane131.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v131;
        hdr.lanes.v131 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v131);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v131);
        lane131.write(md.slot_copy, hdr.lanes.v131);
        lane132.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v132;
        hdr.lanes.v132 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v132);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v132);
        lane132.write(md.slot_copy, hdr.lanes.v132);
        lane133.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v133;
        hdr.lanes.v133 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v133);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v133);
        lane133.write(md.slot_copy, hdr.lanes.v133);
        lane134.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v134;
        hdr.lanes.v134 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v134);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v134);
        lane134.write(md.slot_copy, hdr.lanes.v134);
        lane135.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v135;
        hdr.lanes.v135 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v135);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v135);
        lane135.write(md.slot_copy, hdr.lanes.v135);
        lane136.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v136;
        hdr.lanes.v136 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v136);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v136);
        lane136.write(md.slot_copy, hdr.lanes.v136);
        lane137.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v137;
        hdr.lanes.v137 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v137);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v137);
        lane137.write(md.slot_copy, hdr.lanes.v137);
        lane138.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v138;
        hdr.lanes.v138 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v138);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v138);
        lane138.write(md.slot_copy, hdr.lanes.v138);
        lane139.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v139;
        hdr.lanes.v139 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v139);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v139);
        lane139.write(md.slot_copy, hdr.lanes.v139);
        lane140.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v140;
        hdr.lanes.v140 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v140);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v140);
        lane140.write(md.slot_copy, hdr.lanes.v140);
        lane141.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v141;
        hdr.lanes.v141 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v141);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v141);
        lane141.write(md.slot_copy, hdr.lanes.v141);
        lane142.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v142;
        hdr.lanes.v142 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v142);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v142);
        lane142.write(md.slot_copy, hdr.lanes.v142);
        lane143.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v143;
        hdr.lanes.v143 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v143);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v143);
        lane143.write(md.slot_copy, hdr.lanes.v143);
        lane144.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v144;
        hdr.lanes.v144 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v144);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v144);
        lane144.write(md.slot_copy, hdr.lanes.v144);
        lane145.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v145;
        hdr.lanes.v145 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v145);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v145);
        lane145.write(md.slot_copy, hdr.lanes.v145);
        lane146.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v146;
        hdr.lanes.v146 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v146);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v146);
        lane146.write(md.slot_copy, hdr.lanes.v146);
        lane147.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v147;
        hdr.lanes.v147 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v147);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v147);
        lane147.write(md.slot_copy, hdr.lanes.v147);
        lane148.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v148;
        hdr.lanes.v148 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v148);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v148);
        lane148.write(md.slot_copy, hdr.lanes.v148);
        lane149.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v149;
        hdr.lanes.v149 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v149);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v149);
        lane149.write(md.slot_copy, hdr.lanes.v149);
        lane150.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v150;
        hdr.lanes.v150 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v150);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v150);
        lane150.write(md.slot_copy, hdr.lanes.v150);
        lane151.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v151;
        hdr.lanes.v151 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v151);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v151);
        lane151.write(md.slot_copy, hdr.lanes.v151);
        lane152.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v152;
        hdr.lanes.v152 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v152);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v152);
        lane152.write(md.slot_copy, hdr.lanes.v152);
        lane153.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v153;
        hdr.lanes.v153 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v153);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v153);
        lane153.write(md.slot_copy, hdr.lanes.v153);
        lane154.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v154;
        hdr.lanes.v154 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v154);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v154);
        lane154.write(md.slot_copy, hdr.lanes.v154);
        lane155.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v155;
        hdr.lanes.v155 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v155);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v155);
        lane155.write(md.slot_copy, hdr.lanes.v155);
        lane156.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v156;
        hdr.lanes.v156 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v156);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v156);
        lane156.write(md.slot_copy, hdr.lanes.v156);
        lane157.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v157;
        hdr.lanes.v157 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v157);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v157);
        lane157.write(md.slot_copy, hdr.lanes.v157);
        lane158.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v158;
        hdr.lanes.v158 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v158);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v158);
        lane158.write(md.slot_copy, hdr.lanes.v158);
        lane159.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v159;
        hdr.lanes.v159 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v159);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v159);
        lane159.write(md.slot_copy, hdr.lanes.v159);
        lane160.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v160;
        hdr.lanes.v160 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v160);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v160);
        lane160.write(md.slot_copy, hdr.lanes.v160);
        lane161.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v161;
        hdr.lanes.v161 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v161);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v161);
        lane161.write(md.slot_copy, hdr.lanes.v161);
        lane162.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v162;
        hdr.lanes.v162 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v162);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v162);
        lane162.write(md.slot_copy, hdr.lanes.v162);
        lane163.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v163;
        hdr.lanes.v163 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v163);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v163);
        lane163.write(md.slot_copy, hdr.lanes.v163);
        lane164.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v164;
        hdr.lanes.v164 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v164);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v164);
        lane164.write(md.slot_copy, hdr.lanes.v164);
        lane165.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v165;
        hdr.lanes.v165 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v165);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v165);
        lane165.write(md.slot_copy, hdr.lanes.v165);
        lane166.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v166;
        hdr.lanes.v166 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v166);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v166);
        lane166.write(md.slot_copy, hdr.lanes.v166);
        lane167.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v167;
        hdr.lanes.v167 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v167);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v167);
        lane167.write(md.slot_copy, hdr.lanes.v167);
        lane168.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v168;
        hdr.lanes.v168 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v168);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v168);
        lane168.write(md.slot_copy, hdr.lanes.v168);
        lane169.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v169;
        hdr.lanes.v169 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v169);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v169);
        lane169.write(md.slot_copy, hdr.lanes.v169);
        lane170.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v170;
        hdr.lanes.v170 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v170);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v170);
        lane170.write(md.slot_copy, hdr.lanes.v170);
        lane171.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v171;
        hdr.lanes.v171 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v171);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v171);
        lane171.write(md.slot_copy, hdr.lanes.v171);
        lane172.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v172;
        hdr.lanes.v172 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v172);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v172);
        lane172.write(md.slot_copy, hdr.lanes.v172);
        lane173.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v173;
        hdr.lanes.v173 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v173);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v173);
        lane173.write(md.slot_copy, hdr.lanes.v173);
        lane174.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v174;
        hdr.lanes.v174 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v174);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v174);
        lane174.write(md.slot_copy, hdr.lanes.v174);
        lane175.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v175;
        hdr.lanes.v175 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v175);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v175);
        lane175.write(md.slot_copy, hdr.lanes.v175);
        lane176.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v176;
        hdr.lanes.v176 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v176);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v176);
        lane176.write(md.slot_copy, hdr.lanes.v176);
        lane177.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v177;
        hdr.lanes.v177 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v177);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v177);
        lane177.write(md.slot_copy, hdr.lanes.v177);
        lane178.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v178;
        hdr.lanes.v178 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v178);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v178);
        lane178.write(md.slot_copy, hdr.lanes.v178);
        lane179.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v179;
        hdr.lanes.v179 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v179);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v179);
        lane179.write(md.slot_copy, hdr.lanes.v179);
        lane180.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v180;
        hdr.lanes.v180 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v180);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v180);
        lane180.write(md.slot_copy, hdr.lanes.v180);
        lane181.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v181;
        hdr.lanes.v181 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v181);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v181);
        lane181.write(md.slot_copy, hdr.lanes.v181);
        lane182.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v182;
        hdr.lanes.v182 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v182);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v182);
        lane182.write(md.slot_copy, hdr.lanes.v182);
        lane183.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v183;
        hdr.lanes.v183 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v183);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v183);
        lane183.write(md.slot_copy, hdr.lanes.v183);
        lane184.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v184;
        hdr.lanes.v184 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v184);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v184);
        lane184.write(md.slot_copy, hdr.lanes.v184);
        lane185.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v185;
        hdr.lanes.v185 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v185);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v185);
        lane185.write(md.slot_copy, hdr.lanes.v185);
        lane186.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v186;
        hdr.lanes.v186 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v186);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v186);
        lane186.write(md.slot_copy, hdr.lanes.v186);
        lane187.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v187;
        hdr.lanes.v187 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v187);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v187);
        lane187.write(md.slot_copy, hdr.lanes.v187);
        lane188.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v188;
        hdr.lanes.v188 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v188);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v188);
        lane188.write(md.slot_copy, hdr.lanes.v188);
        lane189.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v189;
        hdr.lanes.v189 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v189);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v189);
        lane189.write(md.slot_copy, hdr.lanes.v189);
        lane190.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v190;
        hdr.lanes.v190 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v190);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v190);
        lane190.write(md.slot_copy, hdr.lanes.v190);
        lane191.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v191;
        hdr.lanes.v191 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v191);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v191);
        lane191.write(md.slot_copy, hdr.lanes.v191);
        lane192.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v192;
        hdr.lanes.v192 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v192);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v192);
        lane192.write(md.slot_copy, hdr.lanes.v192);
        lane193.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v193;
        hdr.lanes.v193 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v193);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v193);
        lane193.write(md.slot_copy, hdr.lanes.v193);
        lane194.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v194;
        hdr.lanes.v194 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v194);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v194);
        lane194.write(md.slot_copy, hdr.lanes.v194);
        lane195.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v195;
        hdr.lanes.v195 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v195);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v195);
        lane195.write(md.slot_copy, hdr.lanes.v195);
        lane196.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v196;
        hdr.lanes.v196 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v196);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v196);
        lane196.write(md.slot_copy, hdr.lanes.v196);
        lane197.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v197;
        hdr.lanes.v197 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v197);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v197);
        lane197.write(md.slot_copy, hdr.lanes.v197);
        lane198.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v198;
        hdr.lanes.v198 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v198);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v198);
        lane198.write(md.slot_copy, hdr.lanes.v198);
        lane199.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v199;
        hdr.lanes.v199 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v199);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v199);
        lane199.write(md.slot_copy, hdr.lanes.v199);
        lane200.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v200;
        hdr.lanes.v200 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v200);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v200);
        lane200.write(md.slot_copy, hdr.lanes.v200);
        lane201.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v201;
        hdr.lanes.v201 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v201);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v201);
        lane201.write(md.slot_copy, hdr.lanes.v201);
        lane202.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v202;
        hdr.lanes.v202 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v202);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v202);
        lane202.write(md.slot_copy, hdr.lanes.v202);
        lane203.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v203;
        hdr.lanes.v203 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v203);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v203);
        lane203.write(md.slot_copy, hdr.lanes.v203);
        lane204.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v204;
        hdr.lanes.v204 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v204);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v204);
        lane204.write(md.slot_copy, hdr.lanes.v204);
        lane205.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v205;
        hdr.lanes.v205 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v205);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v205);
        lane205.write(md.slot_copy, hdr.lanes.v205);
        lane206.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v206;
        hdr.lanes.v206 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v206);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v206);
        lane206.write(md.slot_copy, hdr.lanes.v206);
        lane207.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v207;
        hdr.lanes.v207 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v207);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v207);
        lane207.write(md.slot_copy, hdr.lanes.v207);
        lane208.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v208;
        hdr.lanes.v208 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v208);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v208);
        lane208.write(md.slot_copy, hdr.lanes.v208);
        lane209.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v209;
        hdr.lanes.v209 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v209);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v209);
        lane209.write(md.slot_copy, hdr.lanes.v209);
        lane210.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v210;
        hdr.lanes.v210 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v210);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v210);
        lane210.write(md.slot_copy, hdr.lanes.v210);
        lane211.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v211;
        hdr.lanes.v211 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v211);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v211);
        lane211.write(md.slot_copy, hdr.lanes.v211);
        lane212.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v212;
        hdr.lanes.v212 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v212);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v212);
        lane212.write(md.slot_copy, hdr.lanes.v212);
        lane213.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v213;
        hdr.lanes.v213 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v213);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v213);
        lane213.write(md.slot_copy, hdr.lanes.v213);
        lane214.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v214;
        hdr.lanes.v214 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v214);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v214);
        lane214.write(md.slot_copy, hdr.lanes.v214);
        lane215.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v215;
        hdr.lanes.v215 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v215);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v215);
        lane215.write(md.slot_copy, hdr.lanes.v215);
        lane216.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v216;
        hdr.lanes.v216 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v216);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v216);
        lane216.write(md.slot_copy, hdr.lanes.v216);
        lane217.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v217;
        hdr.lanes.v217 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v217);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v217);
        lane217.write(md.slot_copy, hdr.lanes.v217);
        lane218.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v218;
        hdr.lanes.v218 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v218);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v218);
        lane218.write(md.slot_copy, hdr.lanes.v218);
        lane219.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v219;
        hdr.lanes.v219 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v219);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v219);
        lane219.write(md.slot_copy, hdr.lanes.v219);
        lane220.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v220;
        hdr.lanes.v220 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v220);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v220);
        lane220.write(md.slot_copy, hdr.lanes.v220);
        lane221.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v221;
        hdr.lanes.v221 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v221);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v221);
        lane221.write(md.slot_copy, hdr.lanes.v221);
        lane222.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v222;
        hdr.lanes.v222 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v222);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v222);
        lane222.write(md.slot_copy, hdr.lanes.v222);
        lane223.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v223;
        hdr.lanes.v223 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v223);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v223);
        lane223.write(md.slot_copy, hdr.lanes.v223);
        lane224.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v224;
        hdr.lanes.v224 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v224);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v224);
        lane224.write(md.slot_copy, hdr.lanes.v224);
        lane225.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v225;
        hdr.lanes.v225 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v225);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v225);
        lane225.write(md.slot_copy, hdr.lanes.v225);
        lane226.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v226;
        hdr.lanes.v226 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v226);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v226);
        lane226.write(md.slot_copy, hdr.lanes.v226);
        lane227.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v227;
        hdr.lanes.v227 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v227);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v227);
        lane227.write(md.slot_copy, hdr.lanes.v227);
        lane228.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v228;
        hdr.lanes.v228 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v228);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v228);
        lane228.write(md.slot_copy, hdr.lanes.v228);
        lane229.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v229;
        hdr.lanes.v229 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v229);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v229);
        lane229.write(md.slot_copy, hdr.lanes.v229);
        lane230.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v230;
        hdr.lanes.v230 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v230);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v230);
        lane230.write(md.slot_copy, hdr.lanes.v230);
        lane231.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v231;
        hdr.lanes.v231 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v231);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v231);
        lane231.write(md.slot_copy, hdr.lanes.v231);
        lane232.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v232;
        hdr.lanes.v232 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v232);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v232);
        lane232.write(md.slot_copy, hdr.lanes.v232);
        lane233.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v233;
        hdr.lanes.v233 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v233);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v233);
        lane233.write(md.slot_copy, hdr.lanes.v233);
        lane234.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v234;
        hdr.lanes.v234 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v234);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v234);
        lane234.write(md.slot_copy, hdr.lanes.v234);
        lane235.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v235;
        hdr.lanes.v235 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v235);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v235);
        lane235.write(md.slot_copy, hdr.lanes.v235);
        lane236.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v236;
        hdr.lanes.v236 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v236);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v236);
        lane236.write(md.slot_copy, hdr.lanes.v236);
        lane237.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v237;
        hdr.lanes.v237 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v237);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v237);
        lane237.write(md.slot_copy, hdr.lanes.v237);
        lane238.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v238;
        hdr.lanes.v238 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v238);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v238);
        lane238.write(md.slot_copy, hdr.lanes.v238);
        lane239.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v239;
        hdr.lanes.v239 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v239);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v239);
        lane239.write(md.slot_copy, hdr.lanes.v239);
        lane240.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v240;
        hdr.lanes.v240 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v240);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v240);
        lane240.write(md.slot_copy, hdr.lanes.v240);
        lane241.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v241;
        hdr.lanes.v241 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v241);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v241);
        lane241.write(md.slot_copy, hdr.lanes.v241);
        lane242.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v242;
        hdr.lanes.v242 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v242);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v242);
        lane242.write(md.slot_copy, hdr.lanes.v242);
        lane243.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v243;
        hdr.lanes.v243 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v243);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v243);
        lane243.write(md.slot_copy, hdr.lanes.v243);
        lane244.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v244;
        hdr.lanes.v244 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v244);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v244);
        lane244.write(md.slot_copy, hdr.lanes.v244);
        lane245.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v245;
        hdr.lanes.v245 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v245);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v245);
        lane245.write(md.slot_copy, hdr.lanes.v245);
        lane246.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v246;
        hdr.lanes.v246 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v246);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v246);
        lane246.write(md.slot_copy, hdr.lanes.v246);
        lane247.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v247;
        hdr.lanes.v247 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v247);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v247);
        lane247.write(md.slot_copy, hdr.lanes.v247);
        lane248.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v248;
        hdr.lanes.v248 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v248);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v248);
        lane248.write(md.slot_copy, hdr.lanes.v248);
        lane249.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v249;
        hdr.lanes.v249 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v249);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v249);
        lane249.write(md.slot_copy, hdr.lanes.v249);
        lane250.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v250;
        hdr.lanes.v250 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v250);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v250);
        lane250.write(md.slot_copy, hdr.lanes.v250);
        lane251.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v251;
        hdr.lanes.v251 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v251);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v251);
        lane251.write(md.slot_copy, hdr.lanes.v251);
        lane252.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v252;
        hdr.lanes.v252 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v252);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v252);
        lane252.write(md.slot_copy, hdr.lanes.v252);
        lane253.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v253;
        hdr.lanes.v253 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v253);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v253);
        lane253.write(md.slot_copy, hdr.lanes.v253);
        lane254.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v254;
        hdr.lanes.v254 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v254);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v254);
        lane254.write(md.slot_copy, hdr.lanes.v254);
        lane255.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v255;
        hdr.lanes.v255 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v255);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v255);
        lane255.write(md.slot_copy, hdr.lanes.v255);
        lane256.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v256;
        hdr.lanes.v256 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v256);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v256);
        lane256.write(md.slot_copy, hdr.lanes.v256);
        lane257.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v257;
        hdr.lanes.v257 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v257);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v257);
        lane257.write(md.slot_copy, hdr.lanes.v257);
        lane258.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v258;
        hdr.lanes.v258 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v258);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v258);
        lane258.write(md.slot_copy, hdr.lanes.v258);
        lane259.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v259;
        hdr.lanes.v259 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v259);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v259);
        lane259.write(md.slot_copy, hdr.lanes.v259);
        lane260.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v260;
        hdr.lanes.v260 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v260);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v260);
        lane260.write(md.slot_copy, hdr.lanes.v260);
        lane261.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v261;
        hdr.lanes.v261 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v261);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v261);
        lane261.write(md.slot_copy, hdr.lanes.v261);
        lane262.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v262;
        hdr.lanes.v262 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v262);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v262);
        lane262.write(md.slot_copy, hdr.lanes.v262);
        lane263.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v263;
        hdr.lanes.v263 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v263);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v263);
        lane263.write(md.slot_copy, hdr.lanes.v263);
        lane264.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v264;
        hdr.lanes.v264 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v264);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v264);
        lane264.write(md.slot_copy, hdr.lanes.v264);
        lane265.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v265;
        hdr.lanes.v265 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v265);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v265);
        lane265.write(md.slot_copy, hdr.lanes.v265);
        lane266.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v266;
        hdr.lanes.v266 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v266);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v266);
        lane266.write(md.slot_copy, hdr.lanes.v266);
        lane267.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v267;
        hdr.lanes.v267 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v267);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v267);
        lane267.write(md.slot_copy, hdr.lanes.v267);
        lane268.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v268;
        hdr.lanes.v268 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v268);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v268);
        lane268.write(md.slot_copy, hdr.lanes.v268);
        lane269.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v269;
        hdr.lanes.v269 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v269);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v269);
        lane269.write(md.slot_copy, hdr.lanes.v269);
        lane270.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v270;
        hdr.lanes.v270 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v270);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v270);
        lane270.write(md.slot_copy, hdr.lanes.v270);
        lane271.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v271;
        hdr.lanes.v271 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v271);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v271);
        lane271.write(md.slot_copy, hdr.lanes.v271);
        lane272.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v272;
        hdr.lanes.v272 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v272);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v272);
        lane272.write(md.slot_copy, hdr.lanes.v272);
        lane273.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v273;
        hdr.lanes.v273 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v273);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v273);
        lane273.write(md.slot_copy, hdr.lanes.v273);
        lane274.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v274;
        hdr.lanes.v274 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v274);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v274);
        lane274.write(md.slot_copy, hdr.lanes.v274);
        lane275.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v275;
        hdr.lanes.v275 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v275);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v275);
        lane275.write(md.slot_copy, hdr.lanes.v275);
        lane276.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v276;
        hdr.lanes.v276 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v276);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v276);
        lane276.write(md.slot_copy, hdr.lanes.v276);
        lane277.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v277;
        hdr.lanes.v277 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v277);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v277);
        lane277.write(md.slot_copy, hdr.lanes.v277);
        lane278.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v278;
        hdr.lanes.v278 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v278);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v278);
        lane278.write(md.slot_copy, hdr.lanes.v278);
        lane279.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v279;
        hdr.lanes.v279 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v279);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v279);
        lane279.write(md.slot_copy, hdr.lanes.v279);
        lane280.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v280;
        hdr.lanes.v280 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v280);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v280);
        lane280.write(md.slot_copy, hdr.lanes.v280);
        lane281.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v281;
        hdr.lanes.v281 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v281);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v281);
        lane281.write(md.slot_copy, hdr.lanes.v281);
        lane282.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v282;
        hdr.lanes.v282 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v282);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v282);
        lane282.write(md.slot_copy, hdr.lanes.v282);
        lane283.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v283;
        hdr.lanes.v283 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v283);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v283);
        lane283.write(md.slot_copy, hdr.lanes.v283);
        lane284.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v284;
        hdr.lanes.v284 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v284);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v284);
        lane284.write(md.slot_copy, hdr.lanes.v284);
        lane285.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v285;
        hdr.lanes.v285 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v285);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v285);
        lane285.write(md.slot_copy, hdr.lanes.v285);
        lane286.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v286;
        hdr.lanes.v286 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v286);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v286);
        lane286.write(md.slot_copy, hdr.lanes.v286);
        lane287.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v287;
        hdr.lanes.v287 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v287);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v287);
        lane287.write(md.slot_copy, hdr.lanes.v287);
        lane288.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v288;
        hdr.lanes.v288 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v288);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v288);
        lane288.write(md.slot_copy, hdr.lanes.v288);
        lane289.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v289;
        hdr.lanes.v289 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v289);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v289);
        lane289.write(md.slot_copy, hdr.lanes.v289);
        lane290.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v290;
        hdr.lanes.v290 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v290);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v290);
        lane290.write(md.slot_copy, hdr.lanes.v290);
        lane291.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v291;
        hdr.lanes.v291 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v291);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v291);
        lane291.write(md.slot_copy, hdr.lanes.v291);
        lane292.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v292;
        hdr.lanes.v292 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v292);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v292);
        lane292.write(md.slot_copy, hdr.lanes.v292);
        lane293.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v293;
        hdr.lanes.v293 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v293);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v293);
        lane293.write(md.slot_copy, hdr.lanes.v293);
        lane294.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v294;
        hdr.lanes.v294 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v294);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v294);
        lane294.write(md.slot_copy, hdr.lanes.v294);
        lane295.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v295;
        hdr.lanes.v295 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v295);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v295);
        lane295.write(md.slot_copy, hdr.lanes.v295);
        lane296.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v296;
        hdr.lanes.v296 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v296);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v296);
        lane296.write(md.slot_copy, hdr.lanes.v296);
        lane297.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v297;
        hdr.lanes.v297 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v297);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v297);
        lane297.write(md.slot_copy, hdr.lanes.v297);
        lane298.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v298;
        hdr.lanes.v298 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v298);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v298);
        lane298.write(md.slot_copy, hdr.lanes.v298);
        lane299.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v299;
        hdr.lanes.v299 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v299);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v299);
        lane299.write(md.slot_copy, hdr.lanes.v299);
        lane300.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v300;
        hdr.lanes.v300 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v300);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v300);
        lane300.write(md.slot_copy, hdr.lanes.v300);
        lane301.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v301;
        hdr.lanes.v301 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v301);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v301);
        lane301.write(md.slot_copy, hdr.lanes.v301);
        lane302.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v302;
        hdr.lanes.v302 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v302);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v302);
        lane302.write(md.slot_copy, hdr.lanes.v302);
        lane303.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v303;
        hdr.lanes.v303 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v303);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v303);
        lane303.write(md.slot_copy, hdr.lanes.v303);
        lane304.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v304;
        hdr.lanes.v304 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v304);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v304);
        lane304.write(md.slot_copy, hdr.lanes.v304);
        lane305.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v305;
        hdr.lanes.v305 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v305);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v305);
        lane305.write(md.slot_copy, hdr.lanes.v305);
        lane306.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v306;
        hdr.lanes.v306 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v306);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v306);
        lane306.write(md.slot_copy, hdr.lanes.v306);
        lane307.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v307;
        hdr.lanes.v307 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v307);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v307);
        lane307.write(md.slot_copy, hdr.lanes.v307);
        lane308.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v308;
        hdr.lanes.v308 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v308);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v308);
        lane308.write(md.slot_copy, hdr.lanes.v308);
        lane309.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v309;
        hdr.lanes.v309 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v309);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v309);
        lane309.write(md.slot_copy, hdr.lanes.v309);
        lane310.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v310;
        hdr.lanes.v310 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v310);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v310);
        lane310.write(md.slot_copy, hdr.lanes.v310);
        lane311.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v311;
        hdr.lanes.v311 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v311);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v311);
        lane311.write(md.slot_copy, hdr.lanes.v311);
        lane312.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v312;
        hdr.lanes.v312 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v312);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v312);
        lane312.write(md.slot_copy, hdr.lanes.v312);
        lane313.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v313;
        hdr.lanes.v313 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v313);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v313);
        lane313.write(md.slot_copy, hdr.lanes.v313);
        lane314.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v314;
        hdr.lanes.v314 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v314);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v314);
        lane314.write(md.slot_copy, hdr.lanes.v314);
        lane315.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v315;
        hdr.lanes.v315 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v315);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v315);
        lane315.write(md.slot_copy, hdr.lanes.v315);
        lane316.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v316;
        hdr.lanes.v316 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v316);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v316);
        lane316.write(md.slot_copy, hdr.lanes.v316);
        lane317.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v317;
        hdr.lanes.v317 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v317);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v317);
        lane317.write(md.slot_copy, hdr.lanes.v317);
        lane318.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v318;
        hdr.lanes.v318 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v318);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v318);
        lane318.write(md.slot_copy, hdr.lanes.v318);
        lane319.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v319;
        hdr.lanes.v319 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v319);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v319);
        lane319.write(md.slot_copy, hdr.lanes.v319);
        lane320.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v320;
        hdr.lanes.v320 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v320);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v320);
        lane320.write(md.slot_copy, hdr.lanes.v320);
        lane321.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v321;
        hdr.lanes.v321 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v321);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v321);
        lane321.write(md.slot_copy, hdr.lanes.v321);
        lane322.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v322;
        hdr.lanes.v322 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v322);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v322);
        lane322.write(md.slot_copy, hdr.lanes.v322);
        lane323.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v323;
        hdr.lanes.v323 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v323);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v323);
        lane323.write(md.slot_copy, hdr.lanes.v323);
        lane324.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v324;
        hdr.lanes.v324 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v324);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v324);
        lane324.write(md.slot_copy, hdr.lanes.v324);
        lane325.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v325;
        hdr.lanes.v325 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v325);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v325);
        lane325.write(md.slot_copy, hdr.lanes.v325);
        lane326.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v326;
        hdr.lanes.v326 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v326);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v326);
        lane326.write(md.slot_copy, hdr.lanes.v326);
        lane327.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v327;
        hdr.lanes.v327 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v327);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v327);
        lane327.write(md.slot_copy, hdr.lanes.v327);
        lane328.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v328;
        hdr.lanes.v328 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v328);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v328);
        lane328.write(md.slot_copy, hdr.lanes.v328);
        lane329.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v329;
        hdr.lanes.v329 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v329);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v329);
        lane329.write(md.slot_copy, hdr.lanes.v329);
        lane330.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v330;
        hdr.lanes.v330 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v330);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v330);
        lane330.write(md.slot_copy, hdr.lanes.v330);
        lane331.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v331;
        hdr.lanes.v331 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v331);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v331);
        lane331.write(md.slot_copy, hdr.lanes.v331);
        lane332.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v332;
        hdr.lanes.v332 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v332);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v332);
        lane332.write(md.slot_copy, hdr.lanes.v332);
        lane333.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v333;
        hdr.lanes.v333 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v333);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v333);
        lane333.write(md.slot_copy, hdr.lanes.v333);
        lane334.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v334;
        hdr.lanes.v334 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v334);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v334);
        lane334.write(md.slot_copy, hdr.lanes.v334);
        lane335.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v335;
        hdr.lanes.v335 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v335);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v335);
        lane335.write(md.slot_copy, hdr.lanes.v335);
        lane336.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v336;
        hdr.lanes.v336 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v336);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v336);
        lane336.write(md.slot_copy, hdr.lanes.v336);
        lane337.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v337;
        hdr.lanes.v337 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v337);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v337);
        lane337.write(md.slot_copy, hdr.lanes.v337);
        lane338.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v338;
        hdr.lanes.v338 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v338);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v338);
        lane338.write(md.slot_copy, hdr.lanes.v338);
        lane339.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v339;
        hdr.lanes.v339 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v339);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v339);
        lane339.write(md.slot_copy, hdr.lanes.v339);
        lane340.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v340;
        hdr.lanes.v340 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v340);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v340);
        lane340.write(md.slot_copy, hdr.lanes.v340);
        lane341.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v341;
        hdr.lanes.v341 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v341);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v341);
        lane341.write(md.slot_copy, hdr.lanes.v341);
        lane342.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v342;
        hdr.lanes.v342 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v342);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v342);
        lane342.write(md.slot_copy, hdr.lanes.v342);
        lane343.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v343;
        hdr.lanes.v343 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v343);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v343);
        lane343.write(md.slot_copy, hdr.lanes.v343);
        lane344.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v344;
        hdr.lanes.v344 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v344);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v344);
        lane344.write(md.slot_copy, hdr.lanes.v344);
        lane345.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v345;
        hdr.lanes.v345 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v345);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v345);
        lane345.write(md.slot_copy, hdr.lanes.v345);
        lane346.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v346;
        hdr.lanes.v346 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v346);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v346);
        lane346.write(md.slot_copy, hdr.lanes.v346);
        lane347.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v347;
        hdr.lanes.v347 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v347);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v347);
        lane347.write(md.slot_copy, hdr.lanes.v347);
        lane348.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v348;
        hdr.lanes.v348 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v348);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v348);
        lane348.write(md.slot_copy, hdr.lanes.v348);
        lane349.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v349;
        hdr.lanes.v349 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v349);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v349);
        lane349.write(md.slot_copy, hdr.lanes.v349);
        lane350.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v350;
        hdr.lanes.v350 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v350);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v350);
        lane350.write(md.slot_copy, hdr.lanes.v350);
        lane351.read(held, md.slot_copy);
        wrapped = held + hdr.lanes.v351;
        hdr.lanes.v351 = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v351);
        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v351);
        lane351.write(md.slot_copy, hdr.lanes.v351);
    }

    action lanes_max() {
        lane000.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v000) {
            hdr.lanes.v000 = held;
        }
        lane000.write(md.slot_copy, hdr.lanes.v000);
        lane001.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v001) {
            hdr.lanes.v001 = held;
        }
        lane001.write(md.slot_copy, hdr.lanes.v001);
        lane002.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v002) {
            hdr.lanes.v002 = held;
        }
        lane002.write(md.slot_copy, hdr.lanes.v002);
        lane003.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v003) {
            hdr.lanes.v003 = held;
        }
        lane003.write(md.slot_copy, hdr.lanes.v003);
        lane004.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v004) {
            hdr.lanes.v004 = held;
        }
        lane004.write(md.slot_copy, hdr.lanes.v004);
        lane005.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v005) {
            hdr.lanes.v005 = held;
        }
        lane005.write(md.slot_copy, hdr.lanes.v005);
        lane006.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v006) {
            hdr.lanes.v006 = held;
        }
        lane006.write(md.slot_copy, hdr.lanes.v006);
        lane007.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v007) {
            hdr.lanes.v007 = held;
        }
        lane007.write(md.slot_copy, hdr.lanes.v007);
        lane008.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v008) {
            hdr.lanes.v008 = held;
        }
        lane008.write(md.slot_copy, hdr.lanes.v008);
        lane009.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v009) {
            hdr.lanes.v009 = held;
        }
        lane009.write(md.slot_copy, hdr.lanes.v009);
        lane010.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v010) {
            hdr.lanes.v010 = held;
        }
        lane010.write(md.slot_copy, hdr.lanes.v010);
        lane011.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v011) {
            hdr.lanes.v011 = held;
        }
        lane011.write(md.slot_copy, hdr.lanes.v011);
        lane012.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v012) {
            hdr.lanes.v012 = held;
        }
        lane012.write(md.slot_copy, hdr.lanes.v012);
        lane013.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v013) {
            hdr.lanes.v013 = held;
        }
        lane013.write(md.slot_copy, hdr.lanes.v013);
        lane014.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v014) {
            hdr.lanes.v014 = held;
        }
        lane014.write(md.slot_copy, hdr.lanes.v014);
        lane015.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v015) {
            hdr.lanes.v015 = held;
        }
        lane015.write(md.slot_copy, hdr.lanes.v015);
        lane016.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v016) {
            hdr.lanes.v016 = held;
        }
        lane016.write(md.slot_copy, hdr.lanes.v016);
        lane017.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v017) {
            hdr.lanes.v017 = held;
        }
        lane017.write(md.slot_copy, hdr.lanes.v017);
        lane018.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v018) {
            hdr.lanes.v018 = held;
        }
        lane018.write(md.slot_copy, hdr.lanes.v018);
        lane019.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v019) {
            hdr.lanes.v019 = held;
        }
        lane019.write(md.slot_copy, hdr.lanes.v019);
        lane020.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v020) {
            hdr.lanes.v020 = held;
        }
        lane020.write(md.slot_copy, hdr.lanes.v020);
        lane021.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v021) {
            hdr.lanes.v021 = held;
        }
        lane021.write(md.slot_copy, hdr.lanes.v021);
        lane022.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v022) {
            hdr.lanes.v022 = held;
        }
        lane022.write(md.slot_copy, hdr.lanes.v022);
        lane023.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v023) {
            hdr.lanes.v023 = held;
        }
        lane023.write(md.slot_copy, hdr.lanes.v023);
        lane024.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v024) {
            hdr.lanes.v024 = held;
        }
        lane024.write(md.slot_copy, hdr.lanes.v024);
        lane025.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v025) {
            hdr.lanes.v025 = held;
        }
        lane025.write(md.slot_copy, hdr.lanes.v025);
        lane026.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v026) {
            hdr.lanes.v026 = held;
        }
        lane026.write(md.slot_copy, hdr.lanes.v026);
        lane027.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v027) {
            hdr.lanes.v027 = held;
        }
        lane027.write(md.slot_copy, hdr.lanes.v027);
        lane028.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v028) {
            hdr.lanes.v028 = held;
        }
        lane028.write(md.slot_copy, hdr.lanes.v028);
        lane029.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v029) {
            hdr.lanes.v029 = held;
        }
        lane029.write(md.slot_copy, hdr.lanes.v029);
        lane030.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v030) {
            hdr.lanes.v030 = held;
        }
        lane030.write(md.slot_copy, hdr.lanes.v030);
        lane031.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v031) {
            hdr.lanes.v031 = held;
        }
        lane031.write(md.slot_copy, hdr.lanes.v031);
        lane032.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v032) {
            hdr.lanes.v032 = held;
        }
        lane032.write(md.slot_copy, hdr.lanes.v032);
        lane033.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v033) {
            hdr.lanes.v033 = held;
        }
        lane033.write(md.slot_copy, hdr.lanes.v033);
        lane034.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v034) {
            hdr.lanes.v034 = held;
        }
        lane034.write(md.slot_copy, hdr.lanes.v034);
        lane035.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v035) {
            hdr.lanes.v035 = held;
        }
        lane035.write(md.slot_copy, hdr.lanes.v035);
        lane036.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v036) {
            hdr.lanes.v036 = held;
        }
        lane036.write(md.slot_copy, hdr.lanes.v036);
        lane037.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v037) {
            hdr.lanes.v037 = held;
        }
        lane037.write(md.slot_copy, hdr.lanes.v037);
        lane038.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v038) {
            hdr.lanes.v038 = held;
        }
        lane038.write(md.slot_copy, hdr.lanes.v038);
        lane039.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v039) {
            hdr.lanes.v039 = held;
        }
        lane039.write(md.slot_copy, hdr.lanes.v039);
        lane040.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v040) {
            hdr.lanes.v040 = held;
        }
        lane040.write(md.slot_copy, hdr.lanes.v040);
        lane041.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v041) {
            hdr.lanes.v041 = held;
        }
        lane041.write(md.slot_copy, hdr.lanes.v041);
        lane042.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v042) {
            hdr.lanes.v042 = held;
        }
        lane042.write(md.slot_copy, hdr.lanes.v042);
        lane043.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v043) {
            hdr.lanes.v043 = held;
        }
        lane043.write(md.slot_copy, hdr.lanes.v043);
        lane044.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v044) {
            hdr.lanes.v044 = held;
        }
        lane044.write(md.slot_copy, hdr.lanes.v044);
        lane045.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v045) {
            hdr.lanes.v045 = held;
        }
        lane045.write(md.slot_copy, hdr.lanes.v045);
        lane046.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v046) {
            hdr.lanes.v046 = held;
        }
        lane046.write(md.slot_copy, hdr.lanes.v046);
        lane047.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v047) {
            hdr.lanes.v047 = held;
        }
        lane047.write(md.slot_copy, hdr.lanes.v047);
        lane048.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v048) {
            hdr.lanes.v048 = held;
        }
        lane048.write(md.slot_copy, hdr.lanes.v048);
        lane049.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v049) {
            hdr.lanes.v049 = held;
        }
        lane049.write(md.slot_copy, hdr.lanes.v049);
        lane050.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v050) {
            hdr.lanes.v050 = held;
        }
        lane050.write(md.slot_copy, hdr.lanes.v050);
        lane051.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v051) {
            hdr.lanes.v051 = held;
        }
        lane051.write(md.slot_copy, hdr.lanes.v051);
        lane052.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v052) {
            hdr.lanes.v052 = held;
        }
        lane052.write(md.slot_copy, hdr.lanes.v052);
        lane053.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v053) {
            hdr.lanes.v053 = held;
        }
        lane053.write(md.slot_copy, hdr.lanes.v053);
        lane054.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v054) {
            hdr.lanes.v054 = held;
        }
        lane054.write(md.slot_copy, hdr.lanes.v054);
        lane055.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v055) {
            hdr.lanes.v055 = held;
        }
        lane055.write(md.slot_copy, hdr.lanes.v055);
        lane056.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v056) {
            hdr.lanes.v056 = held;
        }
        lane056.write(md.slot_copy, hdr.lanes.v056);
        lane057.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v057) {
            hdr.lanes.v057 = held;
        }
        lane057.write(md.slot_copy, hdr.lanes.v057);
        lane058.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v058) {
            hdr.lanes.v058 = held;
        }
        lane058.write(md.slot_copy, hdr.lanes.v058);
        lane059.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v059) {
            hdr.lanes.v059 = held;
        }
        lane059.write(md.slot_copy, hdr.lanes.v059);
        lane060.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v060) {
            hdr.lanes.v060 = held;
        }
        lane060.write(md.slot_copy, hdr.lanes.v060);
        lane061.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v061) {
            hdr.lanes.v061 = held;
        }
        lane061.write(md.slot_copy, hdr.lanes.v061);
        lane062.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v062) {
            hdr.lanes.v062 = held;
        }
        lane062.write(md.slot_copy, hdr.lanes.v062);
        lane063.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v063) {
            hdr.lanes.v063 = held;
        }
        lane063.write(md.slot_copy, hdr.lanes.v063);
        lane064.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v064) {
            hdr.lanes.v064 = held;
        }
        lane064.write(md.slot_copy, hdr.lanes.v064);
        lane065.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v065) {
            hdr.lanes.v065 = held;
        }
        lane065.write(md.slot_copy, hdr.lanes.v065);
        lane066.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v066) {
            hdr.lanes.v066 = held;
        }
        lane066.write(md.slot_copy, hdr.lanes.v066);
        lane067.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v067) {
            hdr.lanes.v067 = held;
        }
        lane067.write(md.slot_copy, hdr.lanes.v067);
        lane068.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v068) {
            hdr.lanes.v068 = held;
        }
        lane068.write(md.slot_copy, hdr.lanes.v068);
        lane069.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v069) {
            hdr.lanes.v069 = held;
        }
        lane069.write(md.slot_copy, hdr.lanes.v069);
        lane070.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v070) {
            hdr.lanes.v070 = held;
        }
        lane070.write(md.slot_copy, hdr.lanes.v070);
        lane071.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v071) {
            hdr.lanes.v071 = held;
        }
        lane071.write(md.slot_copy, hdr.lanes.v071);
        lane072.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v072) {
            hdr.lanes.v072 = held;
        }
        lane072.write(md.slot_copy, hdr.lanes.v072);
        lane073.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v073) {
            hdr.lanes.v073 = held;
        }
        lane073.write(md.slot_copy, hdr.lanes.v073);
        lane074.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v074) {
            hdr.lanes.v074 = held;
        }
        lane074.write(md.slot_copy, hdr.lanes.v074);
        lane075.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v075) {
            hdr.lanes.v075 = held;
        }
        lane075.write(md.slot_copy, hdr.lanes.v075);
        lane076.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v076) {
            hdr.lanes.v076 = held;
        }
        lane076.write(md.slot_copy, hdr.lanes.v076);
        lane077.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v077) {
            hdr.lanes.v077 = held;
        }
        lane077.write(md.slot_copy, hdr.lanes.v077);
        lane078.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v078) {
            hdr.lanes.v078 = held;
        }
        lane078.write(md.slot_copy, hdr.lanes.v078);
        lane079.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v079) {
            hdr.lanes.v079 = held;
        }
        lane079.write(md.slot_copy, hdr.lanes.v079);
        lane080.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v080) {
            hdr.lanes.v080 = held;
        }
        lane080.write(md.slot_copy, hdr.lanes.v080);
        lane081.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v081) {
            hdr.lanes.v081 = held;
        }
        lane081.write(md.slot_copy, hdr.lanes.v081);
        lane082.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v082) {
            hdr.lanes.v082 = held;
        }
        lane082.write(md.slot_copy, hdr.lanes.v082);
        lane083.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v083) {
            hdr.lanes.v083 = held;
        }
        lane083.write(md.slot_copy, hdr.lanes.v083);
        lane084.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v084) {
            hdr.lanes.v084 = held;
        }
        lane084.write(md.slot_copy, hdr.lanes.v084);
        lane085.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v085) {
            hdr.lanes.v085 = held;
        }
        lane085.write(md.slot_copy, hdr.lanes.v085);
        lane086.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v086) {
            hdr.lanes.v086 = held;
        }
        lane086.write(md.slot_copy, hdr.lanes.v086);
        lane087.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v087) {
            hdr.lanes.v087 = held;
        }
        lane087.write(md.slot_copy, hdr.lanes.v087);
        lane088.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v088) {
            hdr.lanes.v088 = held;
        }
        lane088.write(md.slot_copy, hdr.lanes.v088);
        lane089.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v089) {
            hdr.lanes.v089 = held;
        }
        lane089.write(md.slot_copy, hdr.lanes.v089);
        lane090.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v090) {
            hdr.lanes.v090 = held;
        }
        lane090.write(md.slot_copy, hdr.lanes.v090);
        lane091.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v091) {
            hdr.lanes.v091 = held;
        }
        lane091.write(md.slot_copy, hdr.lanes.v091);
        lane092.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v092) {
            hdr.lanes.v092 = held;
        }
        lane092.write(md.slot_copy, hdr.lanes.v092);
        lane093.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v093) {
            hdr.lanes.v093 = held;
        }
        lane093.write(md.slot_copy, hdr.lanes.v093);
        lane094.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v094) {
            hdr.lanes.v094 = held;
        }
        lane094.write(md.slot_copy, hdr.lanes.v094);
        lane095.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v095) {
            hdr.lanes.v095 = held;
        }
        lane095.write(md.slot_copy, hdr.lanes.v095);
        lane096.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v096) {
            hdr.lanes.v096 = held;
        }
        lane096.write(md.slot_copy, hdr.lanes.v096);
        lane097.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v097) {
            hdr.lanes.v097 = held;
        }
        lane097.write(md.slot_copy, hdr.lanes.v097);
        lane098.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v098) {
            hdr.lanes.v098 = held;
        }
        lane098.write(md.slot_copy, hdr.lanes.v098);
        lane099.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v099) {
            hdr.lanes.v099 = held;
        }
        lane099.write(md.slot_copy, hdr.lanes.v099);
        lane100.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v100) {
            hdr.lanes.v100 = held;
        }
        lane100.write(md.slot_copy, hdr.lanes.v100);
        lane101.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v101) {
            hdr.lanes.v101 = held;
        }
        lane101.write(md.slot_copy, hdr.lanes.v101);
        lane102.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v102) {
            hdr.lanes.v102 = held;
        }
        lane102.write(md.slot_copy, hdr.lanes.v102);
        lane103.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v103) {
            hdr.lanes.v103 = held;
        }
        lane103.write(md.slot_copy, hdr.lanes.v103);
        lane104.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v104) {
            hdr.lanes.v104 = held;
        }
        lane104.write(md.slot_copy, hdr.lanes.v104);
        lane105.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v105) {
            hdr.lanes.v105 = held;
        }
        lane105.write(md.slot_copy, hdr.lanes.v105);
        lane106.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v106) {
            hdr.lanes.v106 = held;
        }
        lane106.write(md.slot_copy, hdr.lanes.v106);
        lane107.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v107) {
            hdr.lanes.v107 = held;
        }
        lane107.write(md.slot_copy, hdr.lanes.v107);
        lane108.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v108) {
            hdr.lanes.v108 = held;
        }
        lane108.write(md.slot_copy, hdr.lanes.v108);
        lane109.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v109) {
            hdr.lanes.v109 = held;
        }
        lane109.write(md.slot_copy, hdr.lanes.v109);
        lane110.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v110) {
            hdr.lanes.v110 = held;
        }
        lane110.write(md.slot_copy, hdr.lanes.v110);
        lane111.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v111) {
            hdr.lanes.v111 = held;
        }
        lane111.write(md.slot_copy, hdr.lanes.v111);
        lane112.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v112) {
            hdr.lanes.v112 = held;
        }
        lane112.write(md.slot_copy, hdr.lanes.v112);
        lane113.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v113) {
            hdr.lanes.v113 = held;
        }
        lane113.write(md.slot_copy, hdr.lanes.v113);
        lane114.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v114) {
            hdr.lanes.v114 = held;
        }
        lane114.write(md.slot_copy, hdr.lanes.v114);
        lane115.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v115) {
            hdr.lanes.v115 = held;
        }
        lane115.write(md.slot_copy, hdr.lanes.v115);
        lane116.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v116) {
            hdr.lanes.v116 = held;
        }
        lane116.write(md.slot_copy, hdr.lanes.v116);
        lane117.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v117) {
            hdr.lanes.v117 = held;
        }
        lane117.write(md.slot_copy, hdr.lanes.v117);
        lane118.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v118) {
            hdr.lanes.v118 = held;
        }
        lane118.write(md.slot_copy, hdr.lanes.v118);
        lane119.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v119) {
            hdr.lanes.v119 = held;
        }
        lane119.write(md.slot_copy, hdr.lanes.v119);
        lane120.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v120) {
            hdr.lanes.v120 = held;
        }
        lane120.write(md.slot_copy, hdr.lanes.v120);
        lane121.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v121) {
            hdr.lanes.v121 = held;
        }
        lane121.write(md.slot_copy, hdr.lanes.v121);
        lane122.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v122) {
            hdr.lanes.v122 = held;
        }
        lane122.write(md.slot_copy, hdr.lanes.v122);
        lane123.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v123) {
            hdr.lanes.v123 = held;
        }
        lane123.write(md.slot_copy, hdr.lanes.v123);
        lane124.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v124) {
            hdr.lanes.v124 = held;
        }
        lane124.write(md.slot_copy, hdr.lanes.v124);
        lane125.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v125) {
            hdr.lanes.v125 = held;
        }
        lane125.write(md.slot_copy, hdr.lanes.v125);
        lane126.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v126) {
            hdr.lanes.v126 = held;
        }
        lane126.write(md.slot_copy, hdr.lanes.v126);
        lane127.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v127) {
            hdr.lanes.v127 = held;
        }
        lane127.write(md.slot_copy, hdr.lanes.v127);
        lane128.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v128) {
            hdr.lanes.v128 = held;
        }
        lane128.write(md.slot_copy, hdr.lanes.v128);
        lane129.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v129) {
            hdr.lanes.v129 = held;
        }
        lane129.write(md.slot_copy, hdr.lanes.v129);
        lane130.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v130) {
            hdr.lanes.v130 = held;
        }
        lane130.write(md.slot_copy, hdr.lanes.v130);
        lane131.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v131) {
            hdr.lanes.v131 = held;
        }
        lane131.write(md.slot_copy, hdr.lanes.v131);
        lane132.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v132) {
            hdr.lanes.v132 = held;
        }
        lane132.write(md.slot_copy, hdr.lanes.v132);
        lane133.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v133) {
            hdr.lanes.v133 = held;
        }
        lane133.write(md.slot_copy, hdr.lanes.v133);
        lane134.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v134) {
            hdr.lanes.v134 = held;
        }
        lane134.write(md.slot_copy, hdr.lanes.v134);
        lane135.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v135) {
            hdr.lanes.v135 = held;
        }
        lane135.write(md.slot_copy, hdr.lanes.v135);
        lane136.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v136) {
            hdr.lanes.v136 = held;
        }
        lane136.write(md.slot_copy, hdr.lanes.v136);
        lane137.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v137) {
            hdr.lanes.v137 = held;
        }
        lane137.write(md.slot_copy, hdr.lanes.v137);
        lane138.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v138) {
            hdr.lanes.v138 = held;
        }
        lane138.write(md.slot_copy, hdr.lanes.v138);
        lane139.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v139) {
            hdr.lanes.v139 = held;
        }
        lane139.write(md.slot_copy, hdr.lanes.v139);
        lane140.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v140) {
            hdr.lanes.v140 = held;
        }
        lane140.write(md.slot_copy, hdr.lanes.v140);
        lane141.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v141) {
            hdr.lanes.v141 = held;
        }
        lane141.write(md.slot_copy, hdr.lanes.v141);
        lane142.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v142) {
            hdr.lanes.v142 = held;
        }
        lane142.write(md.slot_copy, hdr.lanes.v142);
        lane143.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v143) {
            hdr.lanes.v143 = held;
        }
        lane143.write(md.slot_copy, hdr.lanes.v143);
        lane144.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v144) {
            hdr.lanes.v144 = held;
        }
        lane144.write(md.slot_copy, hdr.lanes.v144);
        lane145.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v145) {
            hdr.lanes.v145 = held;
        }
        lane145.write(md.slot_copy, hdr.lanes.v145);
        lane146.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v146) {
            hdr.lanes.v146 = held;
        }
        lane146.write(md.slot_copy, hdr.lanes.v146);
        lane147.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v147) {
            hdr.lanes.v147 = held;
        }
        lane147.write(md.slot_copy, hdr.lanes.v147);
        lane148.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v148) {
            hdr.lanes.v148 = held;
        }
        lane148.write(md.slot_copy, hdr.lanes.v148);
        lane149.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v149) {
            hdr.lanes.v149 = held;
        }
        lane149.write(md.slot_copy, hdr.lanes.v149);
        lane150.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v150) {
            hdr.lanes.v150 = held;
        }
        lane150.write(md.slot_copy, hdr.lanes.v150);
        lane151.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v151) {
            hdr.lanes.v151 = held;
        }
        lane151.write(md.slot_copy, hdr.lanes.v151);
        lane152.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v152) {
            hdr.lanes.v152 = held;
        }
        lane152.write(md.slot_copy, hdr.lanes.v152);
        lane153.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v153) {
            hdr.lanes.v153 = held;
        }
        lane153.write(md.slot_copy, hdr.lanes.v153);
        lane154.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v154) {
            hdr.lanes.v154 = held;
        }
        lane154.write(md.slot_copy, hdr.lanes.v154);
        lane155.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v155) {
            hdr.lanes.v155 = held;
        }
        lane155.write(md.slot_copy, hdr.lanes.v155);
        lane156.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v156) {
            hdr.lanes.v156 = held;
        }
        lane156.write(md.slot_copy, hdr.lanes.v156);
        lane157.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v157) {
            hdr.lanes.v157 = held;
        }
        lane157.write(md.slot_copy, hdr.lanes.v157);
        lane158.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v158) {
            hdr.lanes.v158 = held;
        }
        lane158.write(md.slot_copy, hdr.lanes.v158);
        lane159.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v159) {
            hdr.lanes.v159 = held;
        }
        lane159.write(md.slot_copy, hdr.lanes.v159);
        lane160.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v160) {
            hdr.lanes.v160 = held;
        }
        lane160.write(md.slot_copy, hdr.lanes.v160);
        lane161.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v161) {
            hdr.lanes.v161 = held;
        }
        lane161.write(md.slot_copy, hdr.lanes.v161);
        lane162.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v162) {
            hdr.lanes.v162 = held;
        }
        lane162.write(md.slot_copy, hdr.lanes.v162);
        lane163.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v163) {
            hdr.lanes.v163 = held;
        }
        lane163.write(md.slot_copy, hdr.lanes.v163);
        lane164.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v164) {
            hdr.lanes.v164 = held;
        }
        lane164.write(md.slot_copy, hdr.lanes.v164);
        lane165.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v165) {
            hdr.lanes.v165 = held;
        }
        lane165.write(md.slot_copy, hdr.lanes.v165);
        lane166.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v166) {
            hdr.lanes.v166 = held;
        }
        lane166.write(md.slot_copy, hdr.lanes.v166);
        lane167.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v167) {
            hdr.lanes.v167 = held;
        }
        lane167.write(md.slot_copy, hdr.lanes.v167);
        lane168.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v168) {
            hdr.lanes.v168 = held;
        }
        lane168.write(md.slot_copy, hdr.lanes.v168);
        lane169.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v169) {
            hdr.lanes.v169 = held;
        }
        lane169.write(md.slot_copy, hdr.lanes.v169);
        lane170.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v170) {
            hdr.lanes.v170 = held;
        }
        lane170.write(md.slot_copy, hdr.lanes.v170);
        lane171.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v171) {
            hdr.lanes.v171 = held;
        }
        lane171.write(md.slot_copy, hdr.lanes.v171);
        lane172.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v172) {
            hdr.lanes.v172 = held;
        }
        lane172.write(md.slot_copy, hdr.lanes.v172);
        lane173.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v173) {
            hdr.lanes.v173 = held;
        }
        lane173.write(md.slot_copy, hdr.lanes.v173);
        lane174.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v174) {
            hdr.lanes.v174 = held;
        }
        lane174.write(md.slot_copy, hdr.lanes.v174);
        lane175.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v175) {
            hdr.lanes.v175 = held;
        }
        lane175.write(md.slot_copy, hdr.lanes.v175);
        lane176.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v176) {
            hdr.lanes.v176 = held;
        }
        lane176.write(md.slot_copy, hdr.lanes.v176);
        lane177.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v177) {
            hdr.lanes.v177 = held;
        }
        lane177.write(md.slot_copy, hdr.lanes.v177);
        lane178.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v178) {
            hdr.lanes.v178 = held;
        }
        lane178.write(md.slot_copy, hdr.lanes.v178);
        lane179.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v179) {
            hdr.lanes.v179 = held;
        }
        lane179.write(md.slot_copy, hdr.lanes.v179);
        lane180.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v180) {
            hdr.lanes.v180 = held;
        }
        lane180.write(md.slot_copy, hdr.lanes.v180);
        lane181.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v181) {
            hdr.lanes.v181 = held;
        }
        lane181.write(md.slot_copy, hdr.lanes.v181);
        lane182.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v182) {
            hdr.lanes.v182 = held;
        }
        lane182.write(md.slot_copy, hdr.lanes.v182);
        lane183.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v183) {
            hdr.lanes.v183 = held;
        }
        lane183.write(md.slot_copy, hdr.lanes.v183);
        lane184.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v184) {
            hdr.lanes.v184 = held;
        }
        lane184.write(md.slot_copy, hdr.lanes.v184);
        lane185.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v185) {
            hdr.lanes.v185 = held;
        }
        lane185.write(md.slot_copy, hdr.lanes.v185);
        lane186.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v186) {
            hdr.lanes.v186 = held;
        }
        lane186.write(md.slot_copy, hdr.lanes.v186);
        lane187.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v187) {
            hdr.lanes.v187 = held;
        }
        lane187.write(md.slot_copy, hdr.lanes.v187);
        lane188.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v188) {
            hdr.lanes.v188 = held;
        }
        lane188.write(md.slot_copy, hdr.lanes.v188);
        lane189.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v189) {
            hdr.lanes.v189 = held;
        }
        lane189.write(md.slot_copy, hdr.lanes.v189);
        lane190.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v190) {
            hdr.lanes.v190 = held;
        }
        lane190.write(md.slot_copy, hdr.lanes.v190);
        lane191.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v191) {
            hdr.lanes.v191 = held;
        }
        lane191.write(md.slot_copy, hdr.lanes.v191);
        lane192.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v192) {
            hdr.lanes.v192 = held;
        }
        lane192.write(md.slot_copy, hdr.lanes.v192);
        lane193.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v193) {
            hdr.lanes.v193 = held;
        }
        lane193.write(md.slot_copy, hdr.lanes.v193);
        lane194.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v194) {
            hdr.lanes.v194 = held;
        }
        lane194.write(md.slot_copy, hdr.lanes.v194);
        lane195.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v195) {
            hdr.lanes.v195 = held;
        }
        lane195.write(md.slot_copy, hdr.lanes.v195);
        lane196.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v196) {
            hdr.lanes.v196 = held;
        }
        lane196.write(md.slot_copy, hdr.lanes.v196);
        lane197.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v197) {
            hdr.lanes.v197 = held;
        }
        lane197.write(md.slot_copy, hdr.lanes.v197);
        lane198.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v198) {
            hdr.lanes.v198 = held;
        }
        lane198.write(md.slot_copy, hdr.lanes.v198);
        lane199.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v199) {
            hdr.lanes.v199 = held;
        }
        lane199.write(md.slot_copy, hdr.lanes.v199);
        lane200.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v200) {
            hdr.lanes.v200 = held;
        }
        lane200.write(md.slot_copy, hdr.lanes.v200);
        lane201.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v201) {
            hdr.lanes.v201 = held;
        }
        lane201.write(md.slot_copy, hdr.lanes.v201);
        lane202.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v202) {
            hdr.lanes.v202 = held;
        }
        lane202.write(md.slot_copy, hdr.lanes.v202);
        lane203.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v203) {
            hdr.lanes.v203 = held;
        }
        lane203.write(md.slot_copy, hdr.lanes.v203);
        lane204.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v204) {
            hdr.lanes.v204 = held;
        }
        lane204.write(md.slot_copy, hdr.lanes.v204);
        lane205.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v205) {
            hdr.lanes.v205 = held;
        }
        lane205.write(md.slot_copy, hdr.lanes.v205);
        lane206.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v206) {
            hdr.lanes.v206 = held;
        }
        lane206.write(md.slot_copy, hdr.lanes.v206);
        lane207.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v207) {
            hdr.lanes.v207 = held;
        }
        lane207.write(md.slot_copy, hdr.lanes.v207);
        lane208.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v208) {
            hdr.lanes.v208 = held;
        }
        lane208.write(md.slot_copy, hdr.lanes.v208);
        lane209.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v209) {
            hdr.lanes.v209 = held;
        }
        lane209.write(md.slot_copy, hdr.lanes.v209);
        lane210.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v210) {
            hdr.lanes.v210 = held;
        }
        lane210.write(md.slot_copy, hdr.lanes.v210);
        lane211.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v211) {
            hdr.lanes.v211 = held;
        }
        lane211.write(md.slot_copy, hdr.lanes.v211);
        lane212.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v212) {
            hdr.lanes.v212 = held;
        }
        lane212.write(md.slot_copy, hdr.lanes.v212);
        lane213.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v213) {
            hdr.lanes.v213 = held;
        }
        lane213.write(md.slot_copy, hdr.lanes.v213);
        lane214.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v214) {
            hdr.lanes.v214 = held;
        }
        lane214.write(md.slot_copy, hdr.lanes.v214);
        lane215.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v215) {
            hdr.lanes.v215 = held;
        }
        lane215.write(md.slot_copy, hdr.lanes.v215);
        lane216.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v216) {
            hdr.lanes.v216 = held;
        }
        lane216.write(md.slot_copy, hdr.lanes.v216);
        lane217.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v217) {
            hdr.lanes.v217 = held;
        }
        lane217.write(md.slot_copy, hdr.lanes.v217);
        lane218.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v218) {
            hdr.lanes.v218 = held;
        }
        lane218.write(md.slot_copy, hdr.lanes.v218);
        lane219.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v219) {
            hdr.lanes.v219 = held;
        }
        lane219.write(md.slot_copy, hdr.lanes.v219);
        lane220.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v220) {
            hdr.lanes.v220 = held;
        }
        lane220.write(md.slot_copy, hdr.lanes.v220);
        lane221.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v221) {
            hdr.lanes.v221 = held;
        }
        lane221.write(md.slot_copy, hdr.lanes.v221);
        lane222.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v222) {
            hdr.lanes.v222 = held;
        }
        lane222.write(md.slot_copy, hdr.lanes.v222);
        lane223.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v223) {
            hdr.lanes.v223 = held;
        }
        lane223.write(md.slot_copy, hdr.lanes.v223);
        lane224.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v224) {
            hdr.lanes.v224 = held;
        }
        lane224.write(md.slot_copy, hdr.lanes.v224);
        lane225.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v225) {
            hdr.lanes.v225 = held;
        }
        lane225.write(md.slot_copy, hdr.lanes.v225);
        lane226.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v226) {
            hdr.lanes.v226 = held;
        }
        lane226.write(md.slot_copy, hdr.lanes.v226);
        lane227.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v227) {
            hdr.lanes.v227 = held;
        }
        lane227.write(md.slot_copy, hdr.lanes.v227);
        lane228.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v228) {
            hdr.lanes.v228 = held;
        }
        lane228.write(md.slot_copy, hdr.lanes.v228);
        lane229.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v229) {
            hdr.lanes.v229 = held;
        }
        lane229.write(md.slot_copy, hdr.lanes.v229);
        lane230.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v230) {
            hdr.lanes.v230 = held;
        }
        lane230.write(md.slot_copy, hdr.lanes.v230);
        lane231.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v231) {
            hdr.lanes.v231 = held;
        }
        lane231.write(md.slot_copy, hdr.lanes.v231);
        lane232.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v232) {
            hdr.lanes.v232 = held;
        }
        lane232.write(md.slot_copy, hdr.lanes.v232);
        lane233.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v233) {
            hdr.lanes.v233 = held;
        }
        lane233.write(md.slot_copy, hdr.lanes.v233);
        lane234.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v234) {
            hdr.lanes.v234 = held;
        }
        lane234.write(md.slot_copy, hdr.lanes.v234);
        lane235.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v235) {
            hdr.lanes.v235 = held;
        }
        lane235.write(md.slot_copy, hdr.lanes.v235);
        lane236.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v236) {
            hdr.lanes.v236 = held;
        }
        lane236.write(md.slot_copy, hdr.lanes.v236);
        lane237.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v237) {
            hdr.lanes.v237 = held;
        }
        lane237.write(md.slot_copy, hdr.lanes.v237);
        lane238.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v238) {
            hdr.lanes.v238 = held;
        }
        lane238.write(md.slot_copy, hdr.lanes.v238);
        lane239.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v239) {
            hdr.lanes.v239 = held;
        }
        lane239.write(md.slot_copy, hdr.lanes.v239);
        lane240.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v240) {
            hdr.lanes.v240 = held;
        }
        lane240.write(md.slot_copy, hdr.lanes.v240);
        lane241.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v241) {
            hdr.lanes.v241 = held;
        }
        lane241.write(md.slot_copy, hdr.lanes.v241);
        lane242.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v242) {
            hdr.lanes.v242 = held;
        }
        lane242.write(md.slot_copy, hdr.lanes.v242);
        lane243.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v243) {
            hdr.lanes.v243 = held;
        }
        lane243.write(md.slot_copy, hdr.lanes.v243);
        lane244.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v244) {
            hdr.lanes.v244 = held;
        }
        lane244.write(md.slot_copy, hdr.lanes.v244);
        lane245.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v245) {
            hdr.lanes.v245 = held;
        }
        lane245.write(md.slot_copy, hdr.lanes.v245);
        lane246.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v246) {
            hdr.lanes.v246 = held;
        }
        lane246.write(md.slot_copy, hdr.lanes.v246);
        lane247.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v247) {
            hdr.lanes.v247 = held;
        }
        lane247.write(md.slot_copy, hdr.lanes.v247);
        lane248.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v248) {
            hdr.lanes.v248 = held;
        }
        lane248.write(md.slot_copy, hdr.lanes.v248);
        lane249.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v249) {
            hdr.lanes.v249 = held;
        }
        lane249.write(md.slot_copy, hdr.lanes.v249);
        lane250.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v250) {
            hdr.lanes.v250 = held;
        }
        lane250.write(md.slot_copy, hdr.lanes.v250);
        lane251.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v251) {
            hdr.lanes.v251 = held;
        }
        lane251.write(md.slot_copy, hdr.lanes.v251);
        lane252.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v252) {
            hdr.lanes.v252 = held;
        }
        lane252.write(md.slot_copy, hdr.lanes.v252);
        lane253.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v253) {
            hdr.lanes.v253 = held;
        }
        lane253.write(md.slot_copy, hdr.lanes.v253);
        lane254.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v254) {
            hdr.lanes.v254 = held;
        }
        lane254.write(md.slot_copy, hdr.lanes.v254);
        lane255.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v255) {
            hdr.lanes.v255 = held;
        }
        lane255.write(md.slot_copy, hdr.lanes.v255);
        lane256.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v256) {
            hdr.lanes.v256 = held;
        }
        lane256.write(md.slot_copy, hdr.lanes.v256);
        lane257.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v257) {
            hdr.lanes.v257 = held;
        }
        lane257.write(md.slot_copy, hdr.lanes.v257);
        lane258.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v258) {
            hdr.lanes.v258 = held;
        }
        lane258.write(md.slot_copy, hdr.lanes.v258);
        lane259.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v259) {
            hdr.lanes.v259 = held;
        }
        lane259.write(md.slot_copy, hdr.lanes.v259);
        lane260.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v260) {
            hdr.lanes.v260 = held;
        }
        lane260.write(md.slot_copy, hdr.lanes.v260);
        lane261.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v261) {
            hdr.lanes.v261 = held;
        }
        lane261.write(md.slot_copy, hdr.lanes.v261);
        lane262.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v262) {
            hdr.lanes.v262 = held;
        }
        lane262.write(md.slot_copy, hdr.lanes.v262);
        lane263.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v263) {
            hdr.lanes.v263 = held;
        }
        lane263.write(md.slot_copy, hdr.lanes.v263);
        lane264.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v264) {
            hdr.lanes.v264 = held;
        }
        lane264.write(md.slot_copy, hdr.lanes.v264);
        lane265.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v265) {
            hdr.lanes.v265 = held;
        }
        lane265.write(md.slot_copy, hdr.lanes.v265);
        lane266.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v266) {
            hdr.lanes.v266 = held;
        }
        lane266.write(md.slot_copy, hdr.lanes.v266);
        lane267.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v267) {
            hdr.lanes.v267 = held;
        }
        lane267.write(md.slot_copy, hdr.lanes.v267);
        lane268.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v268) {
            hdr.lanes.v268 = held;
        }
        lane268.write(md.slot_copy, hdr.lanes.v268);
        lane269.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v269) {
            hdr.lanes.v269 = held;
        }
        lane269.write(md.slot_copy, hdr.lanes.v269);
        lane270.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v270) {
            hdr.lanes.v270 = held;
        }
        lane270.write(md.slot_copy, hdr.lanes.v270);
        lane271.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v271) {
            hdr.lanes.v271 = held;
        }
        lane271.write(md.slot_copy, hdr.lanes.v271);
        lane272.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v272) {
            hdr.lanes.v272 = held;
        }
        lane272.write(md.slot_copy, hdr.lanes.v272);
        lane273.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v273) {
            hdr.lanes.v273 = held;
        }
        lane273.write(md.slot_copy, hdr.lanes.v273);
        lane274.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v274) {
            hdr.lanes.v274 = held;
        }
        lane274.write(md.slot_copy, hdr.lanes.v274);
        lane275.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v275) {
            hdr.lanes.v275 = held;
        }
        lane275.write(md.slot_copy, hdr.lanes.v275);
        lane276.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v276) {
            hdr.lanes.v276 = held;
        }
        lane276.write(md.slot_copy, hdr.lanes.v276);
        lane277.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v277) {
            hdr.lanes.v277 = held;
        }
        lane277.write(md.slot_copy, hdr.lanes.v277);
        lane278.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v278) {
            hdr.lanes.v278 = held;
        }
        lane278.write(md.slot_copy, hdr.lanes.v278);
        lane279.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v279) {
            hdr.lanes.v279 = held;
        }
        lane279.write(md.slot_copy, hdr.lanes.v279);
        lane280.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v280) {
            hdr.lanes.v280 = held;
        }
        lane280.write(md.slot_copy, hdr.lanes.v280);
        lane281.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v281) {
            hdr.lanes.v281 = held;
        }
        lane281.write(md.slot_copy, hdr.lanes.v281);
        lane282.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v282) {
            hdr.lanes.v282 = held;
        }
        lane282.write(md.slot_copy, hdr.lanes.v282);
        lane283.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v283) {
            hdr.lanes.v283 = held;
        }
        lane283.write(md.slot_copy, hdr.lanes.v283);
        lane284.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v284) {
            hdr.lanes.v284 = held;
        }
        lane284.write(md.slot_copy, hdr.lanes.v284);
        lane285.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v285) {
            hdr.lanes.v285 = held;
        }
        lane285.write(md.slot_copy, hdr.lanes.v285);
        lane286.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v286) {
            hdr.lanes.v286 = held;
        }
        lane286.write(md.slot_copy, hdr.lanes.v286);
        lane287.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v287) {
            hdr.lanes.v287 = held;
        }
        lane287.write(md.slot_copy, hdr.lanes.v287);
        lane288.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v288) {
            hdr.lanes.v288 = held;
        }
        lane288.write(md.slot_copy, hdr.lanes.v288);
        lane289.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v289) {
            hdr.lanes.v289 = held;
        }
        lane289.write(md.slot_copy, hdr.lanes.v289);
        lane290.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v290) {
            hdr.lanes.v290 = held;
        }
        lane290.write(md.slot_copy, hdr.lanes.v290);
        lane291.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v291) {
            hdr.lanes.v291 = held;
        }
        lane291.write(md.slot_copy, hdr.lanes.v291);
        lane292.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v292) {
            hdr.lanes.v292 = held;
        }
        lane292.write(md.slot_copy, hdr.lanes.v292);
        lane293.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v293) {
            hdr.lanes.v293 = held;
        }
        lane293.write(md.slot_copy, hdr.lanes.v293);
        lane294.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v294) {
            hdr.lanes.v294 = held;
        }
        lane294.write(md.slot_copy, hdr.lanes.v294);
        lane295.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v295) {
            hdr.lanes.v295 = held;
        }
        lane295.write(md.slot_copy, hdr.lanes.v295);
        lane296.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v296) {
            hdr.lanes.v296 = held;
        }
        lane296.write(md.slot_copy, hdr.lanes.v296);
        lane297.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v297) {
            hdr.lanes.v297 = held;
        }
        lane297.write(md.slot_copy, hdr.lanes.v297);
        lane298.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v298) {
            hdr.lanes.v298 = held;
        }
        lane298.write(md.slot_copy, hdr.lanes.v298);
        lane299.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v299) {
            hdr.lanes.v299 = held;
        }
        lane299.write(md.slot_copy, hdr.lanes.v299);
        lane300.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v300) {
            hdr.lanes.v300 = held;
        }
        lane300.write(md.slot_copy, hdr.lanes.v300);
        lane301.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v301) {
            hdr.lanes.v301 = held;
        }
        lane301.write(md.slot_copy, hdr.lanes.v301);
        lane302.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v302) {
            hdr.lanes.v302 = held;
        }
        lane302.write(md.slot_copy, hdr.lanes.v302);
        lane303.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v303) {
            hdr.lanes.v303 = held;
        }
        lane303.write(md.slot_copy, hdr.lanes.v303);
        lane304.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v304) {
            hdr.lanes.v304 = held;
        }
        lane304.write(md.slot_copy, hdr.lanes.v304);
        lane305.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v305) {
            hdr.lanes.v305 = held;
        }
        lane305.write(md.slot_copy, hdr.lanes.v305);
        lane306.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v306) {
            hdr.lanes.v306 = held;
        }
        lane306.write(md.slot_copy, hdr.lanes.v306);
        lane307.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v307) {
            hdr.lanes.v307 = held;
        }
        lane307.write(md.slot_copy, hdr.lanes.v307);
        lane308.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v308) {
            hdr.lanes.v308 = held;
        }
        lane308.write(md.slot_copy, hdr.lanes.v308);
        lane309.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v309) {
            hdr.lanes.v309 = held;
        }
        lane309.write(md.slot_copy, hdr.lanes.v309);
        lane310.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v310) {
            hdr.lanes.v310 = held;
        }
        lane310.write(md.slot_copy, hdr.lanes.v310);
        lane311.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v311) {
            hdr.lanes.v311 = held;
        }
        lane311.write(md.slot_copy, hdr.lanes.v311);
        lane312.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v312) {
            hdr.lanes.v312 = held;
        }
        lane312.write(md.slot_copy, hdr.lanes.v312);
        lane313.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v313) {
            hdr.lanes.v313 = held;
        }
        lane313.write(md.slot_copy, hdr.lanes.v313);
        lane314.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v314) {
            hdr.lanes.v314 = held;
        }
        lane314.write(md.slot_copy, hdr.lanes.v314);
        lane315.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v315) {
            hdr.lanes.v315 = held;
        }
        lane315.write(md.slot_copy, hdr.lanes.v315);
        lane316.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v316) {
            hdr.lanes.v316 = held;
        }
        lane316.write(md.slot_copy, hdr.lanes.v316);
        lane317.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v317) {
            hdr.lanes.v317 = held;
        }
        lane317.write(md.slot_copy, hdr.lanes.v317);
        lane318.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v318) {
            hdr.lanes.v318 = held;
        }
        lane318.write(md.slot_copy, hdr.lanes.v318);
        lane319.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v319) {
            hdr.lanes.v319 = held;
        }
        lane319.write(md.slot_copy, hdr.lanes.v319);
        lane320.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v320) {
            hdr.lanes.v320 = held;
        }
        lane320.write(md.slot_copy, hdr.lanes.v320);
        lane321.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v321) {
            hdr.lanes.v321 = held;
        }
        lane321.write(md.slot_copy, hdr.lanes.v321);
        lane322.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v322) {
            hdr.lanes.v322 = held;
        }
        lane322.write(md.slot_copy, hdr.lanes.v322);
        lane323.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v323) {
            hdr.lanes.v323 = held;
        }
        lane323.write(md.slot_copy, hdr.lanes.v323);
        lane324.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v324) {
            hdr.lanes.v324 = held;
        }
        lane324.write(md.slot_copy, hdr.lanes.v324);
        lane325.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v325) {
            hdr.lanes.v325 = held;
        }
        lane325.write(md.slot_copy, hdr.lanes.v325);
        lane326.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v326) {
            hdr.lanes.v326 = held;
        }
        lane326.write(md.slot_copy, hdr.lanes.v326);
        lane327.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v327) {
            hdr.lanes.v327 = held;
        }
        lane327.write(md.slot_copy, hdr.lanes.v327);
        lane328.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v328) {
            hdr.lanes.v328 = held;
        }
        lane328.write(md.slot_copy, hdr.lanes.v328);
        lane329.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v329) {
            hdr.lanes.v329 = held;
        }
        lane329.write(md.slot_copy, hdr.lanes.v329);
        lane330.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v330) {
            hdr.lanes.v330 = held;
        }
        lane330.write(md.slot_copy, hdr.lanes.v330);
        lane331.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v331) {
            hdr.lanes.v331 = held;
        }
        lane331.write(md.slot_copy, hdr.lanes.v331);
        lane332.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v332) {
            hdr.lanes.v332 = held;
        }
        lane332.write(md.slot_copy, hdr.lanes.v332);
        lane333.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v333) {
            hdr.lanes.v333 = held;
        }
        lane333.write(md.slot_copy, hdr.lanes.v333);
        lane334.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v334) {
            hdr.lanes.v334 = held;
        }
        lane334.write(md.slot_copy, hdr.lanes.v334);
        lane335.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v335) {
            hdr.lanes.v335 = held;
        }
        lane335.write(md.slot_copy, hdr.lanes.v335);
        lane336.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v336) {
            hdr.lanes.v336 = held;
        }
        lane336.write(md.slot_copy, hdr.lanes.v336);
        lane337.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v337) {
            hdr.lanes.v337 = held;
        }
        lane337.write(md.slot_copy, hdr.lanes.v337);
        lane338.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v338) {
            hdr.lanes.v338 = held;
        }
        lane338.write(md.slot_copy, hdr.lanes.v338);
        lane339.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v339) {
            hdr.lanes.v339 = held;
        }
        lane339.write(md.slot_copy, hdr.lanes.v339);
        lane340.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v340) {
            hdr.lanes.v340 = held;
        }
        lane340.write(md.slot_copy, hdr.lanes.v340);
        lane341.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v341) {
            hdr.lanes.v341 = held;
        }
        lane341.write(md.slot_copy, hdr.lanes.v341);
        lane342.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v342) {
            hdr.lanes.v342 = held;
        }
        lane342.write(md.slot_copy, hdr.lanes.v342);
        lane343.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v343) {
            hdr.lanes.v343 = held;
        }
        lane343.write(md.slot_copy, hdr.lanes.v343);
        lane344.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v344) {
            hdr.lanes.v344 = held;
        }
        lane344.write(md.slot_copy, hdr.lanes.v344);
        lane345.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v345) {
            hdr.lanes.v345 = held;
        }
        lane345.write(md.slot_copy, hdr.lanes.v345);
        lane346.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v346) {
            hdr.lanes.v346 = held;
        }
        lane346.write(md.slot_copy, hdr.lanes.v346);
        lane347.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v347) {
            hdr.lanes.v347 = held;
        }
        lane347.write(md.slot_copy, hdr.lanes.v347);
        lane348.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v348) {
            hdr.lanes.v348 = held;
        }
        lane348.write(md.slot_copy, hdr.lanes.v348);
        lane349.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v349) {
            hdr.lanes.v349 = held;
        }
        lane349.write(md.slot_copy, hdr.lanes.v349);
        lane350.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v350) {
            hdr.lanes.v350 = held;
        }
        lane350.write(md.slot_copy, hdr.lanes.v350);
        lane351.read(held, md.slot_copy);
        if ((int<32>)held > (int<32>)hdr.lanes.v351) {
            hdr.lanes.v351 = held;
        }
        lane351.write(md.slot_copy, hdr.lanes.v351);
    }

    action lanes_read() {
        lane000.read(hdr.lanes.v000, md.slot_copy);
        lane001.read(hdr.lanes.v001, md.slot_copy);
        lane002.read(hdr.lanes.v002, md.slot_copy);
        lane003.read(hdr.lanes.v003, md.slot_copy);
        lane004.read(hdr.lanes.v004, md.slot_copy);
        lane005.read(hdr.lanes.v005, md.slot_copy);
        lane006.read(hdr.lanes.v006, md.slot_copy);
        lane007.read(hdr.lanes.v007, md.slot_copy);
        lane008.read(hdr.lanes.v008, md.slot_copy);
        lane009.read(hdr.lanes.v009, md.slot_copy);
        lane010.read(hdr.lanes.v010, md.slot_copy);
        lane011.read(hdr.lanes.v011, md.slot_copy);
        lane012.read(hdr.lanes.v012, md.slot_copy);
        lane013.read(hdr.lanes.v013, md.slot_copy);
        lane014.read(hdr.lanes.v014, md.slot_copy);
        lane015.read(hdr.lanes.v015, md.slot_copy);
        lane016.read(hdr.lanes.v016, md.slot_copy);
        lane017.read(hdr.lanes.v017, md.slot_copy);
        lane018.read(hdr.lanes.v018, md.slot_copy);
        lane019.read(hdr.lanes.v019, md.slot_copy);
        lane020.read(hdr.lanes.v020, md.slot_copy);
        lane021.read(hdr.lanes.v021, md.slot_copy);
        lane022.read(hdr.lanes.v022, md.slot_copy);
        lane023.read(hdr.lanes.v023, md.slot_copy);
        lane024.read(hdr.lanes.v024, md.slot_copy);
        lane025.read(hdr.lanes.v025, md.slot_copy);
        lane026.read(hdr.lanes.v026, md.slot_copy);
        lane027.read(hdr.lanes.v027, md.slot_copy);
        lane028.read(hdr.lanes.v028, md.slot_copy);
        lane029.read(hdr.lanes.v029, md.slot_copy);
        lane030.read(hdr.lanes.v030, md.slot_copy);
        lane031.read(hdr.lanes.v031, md.slot_copy);
        lane032.read(hdr.lanes.v032, md.slot_copy);
        lane033.read(hdr.lanes.v033, md.slot_copy);
        lane034.read(hdr.lanes.v034, md.slot_copy);
        lane035.read(hdr.lanes.v035, md.slot_copy);
        lane036.read(hdr.lanes.v036, md.slot_copy);
        lane037.read(hdr.lanes.v037, md.slot_copy);
        lane038.read(hdr.lanes.v038, md.slot_copy);
        lane039.read(hdr.lanes.v039, md.slot_copy);
        lane040.read(hdr.lanes.v040, md.slot_copy);
        lane041.read(hdr.lanes.v041, md.slot_copy);
        lane042.read(hdr.lanes.v042, md.slot_copy);
        lane043.read(hdr.lanes.v043, md.slot_copy);
        lane044.read(hdr.lanes.v044, md.slot_copy);
        lane045.read(hdr.lanes.v045, md.slot_copy);
        lane046.read(hdr.lanes.v046, md.slot_copy);
        lane047.read(hdr.lanes.v047, md.slot_copy);
        lane048.read(hdr.lanes.v048, md.slot_copy);
        lane049.read(hdr.lanes.v049, md.slot_copy);
        lane050.read(hdr.lanes.v050, md.slot_copy);
        lane051.read(hdr.lanes.v051, md.slot_copy);
        lane052.read(hdr.lanes.v052, md.slot_copy);
        lane053.read(hdr.lanes.v053, md.slot_copy);
        lane054.read(hdr.lanes.v054, md.slot_copy);
        lane055.read(hdr.lanes.v055, md.slot_copy);
        lane056.read(hdr.lanes.v056, md.slot_copy);
        lane057.read(hdr.lanes.v057, md.slot_copy);
        lane058.read(hdr.lanes.v058, md.slot_copy);
        lane059.read(hdr.lanes.v059, md.slot_copy);
        lane060.read(hdr.lanes.v060, md.slot_copy);
        lane061.read(hdr.lanes.v061, md.slot_copy);
        lane062.read(hdr.lanes.v062, md.slot_copy);
        lane063.read(hdr.lanes.v063, md.slot_copy);
        lane064.read(hdr.lanes.v064, md.slot_copy);
        lane065.read(hdr.lanes.v065, md.slot_copy);
        lane066.read(hdr.lanes.v066, md.slot_copy);
        lane067.read(hdr.lanes.v067, md.slot_copy);
        lane068.read(hdr.lanes.v068, md.slot_copy);
        lane069.read(hdr.lanes.v069, md.slot_copy);
        lane070.read(hdr.lanes.v070, md.slot_copy);
        lane071.read(hdr.lanes.v071, md.slot_copy);
        lane072.read(hdr.lanes.v072, md.slot_copy);
        lane073.read(hdr.lanes.v073, md.slot_copy);
        lane074.read(hdr.lanes.v074, md.slot_copy);
        lane075.read(hdr.lanes.v075, md.slot_copy);
        lane076.read(hdr.lanes.v076, md.slot_copy);
        lane077.read(hdr.lanes.v077, md.slot_copy);
        lane078.read(hdr.lanes.v078, md.slot_copy);
        lane079.read(hdr.lanes.v079, md.slot_copy);
        lane080.read(hdr.lanes.v080, md.slot_copy);
        lane081.read(hdr.lanes.v081, md.slot_copy);
        lane082.read(hdr.lanes.v082, md.slot_copy);
        lane083.read(hdr.lanes.v083, md.slot_copy);
        lane084.read(hdr.lanes.v084, md.slot_copy);
        lane085.read(hdr.lanes.v085, md.slot_copy);
        lane086.read(hdr.lanes.v086, md.slot_copy);
        lane087.read(hdr.lanes.v087, md.slot_copy);
        lane088.read(hdr.lanes.v088, md.slot_copy);
        lane089.read(hdr.lanes.v089, md.slot_copy);
        lane090.read(hdr.lanes.v090, md.slot_copy);
        lane091.read(hdr.lanes.v091, md.slot_copy);
        lane092.read(hdr.lanes.v092, md.slot_copy);
        lane093.read(hdr.lanes.v093, md.slot_copy);
        lane094.read(hdr.lanes.v094, md.slot_copy);
        lane095.read(hdr.lanes.v095, md.slot_copy);
        lane096.read(hdr.lanes.v096, md.slot_copy);
        lane097.read(hdr.lanes.v097, md.slot_copy);
        lane098.read(hdr.lanes.v098, md.slot_copy);
        lane099.read(hdr.lanes.v099, md.slot_copy);
        lane100.read(hdr.lanes.v100, md.slot_copy);
        lane101.read(hdr.lanes.v101, md.slot_copy);
        lane102.read(hdr.lanes.v102, md.slot_copy);
        lane103.read(hdr.lanes.v103, md.slot_copy);
        lane104.read(hdr.lanes.v104, md.slot_copy);
        lane105.read(hdr.lanes.v105, md.slot_copy);
        lane106.read(hdr.lanes.v106, md.slot_copy);
        lane107.read(hdr.lanes.v107, md.slot_copy);
        lane108.read(hdr.lanes.v108, md.slot_copy);
        lane109.read(hdr.lanes.v109, md.slot_copy);
        lane110.read(hdr.lanes.v110, md.slot_copy);
        lane111.read(hdr.lanes.v111, md.slot_copy);
        lane112.read(hdr.lanes.v112, md.slot_copy);
        lane113.read(hdr.lanes.v113, md.slot_copy);
        lane114.read(hdr.lanes.v114, md.slot_copy);
        lane115.read(hdr.lanes.v115, md.slot_copy);
        lane116.read(hdr.lanes.v116, md.slot_copy);
        lane117.read(hdr.lanes.v117, md.slot_copy);
        lane118.read(hdr.lanes.v118, md.slot_copy);
        lane119.read(hdr.lanes.v119, md.slot_copy);
        lane120.read(hdr.lanes.v120, md.slot_copy);
        lane121.read(hdr.lanes.v121, md.slot_copy);
        lane122.read(hdr.lanes.v122, md.slot_copy);
        lane123.read(hdr.lanes.v123, md.slot_copy);
        lane124.read(hdr.lanes.v124, md.slot_copy);
        lane125.read(hdr.lanes.v125, md.slot_copy);
        lane126.read(hdr.lanes.v126, md.slot_copy);
        lane127.read(hdr.lanes.v127, md.slot_copy);
        lane128.read(hdr.lanes.v128, md.slot_copy);
        lane129.read(hdr.lanes.v129, md.slot_copy);
        lane130.read(hdr.lanes.v130, md.slot_copy);
        lane131.read(hdr.lanes.v131, md.slot_copy);
        lane132.read(hdr.lanes.v132, md.slot_copy);
        lane133.read(hdr.lanes.v133, md.slot_copy);
        lane134.read(hdr.lanes.v134, md.slot_copy);
        lane135.read(hdr.lanes.v135, md.slot_copy);
        lane136.read(hdr.lanes.v136, md.slot_copy);
        lane137.read(hdr.lanes.v137, md.slot_copy);
        lane138.read(hdr.lanes.v138, md.slot_copy);
        lane139.read(hdr.lanes.v139, md.slot_copy);
        lane140.read(hdr.lanes.v140, md.slot_copy);
        lane141.read(hdr.lanes.v141, md.slot_copy);
        lane142.read(hdr.lanes.v142, md.slot_copy);
        lane143.read(hdr.lanes.v143, md.slot_copy);
        lane144.read(hdr.lanes.v144, md.slot_copy);
        lane145.read(hdr.lanes.v145, md.slot_copy);
        lane146.read(hdr.lanes.v146, md.slot_copy);
        lane147.read(hdr.lanes.v147, md.slot_copy);
        lane148.read(hdr.lanes.v148, md.slot_copy);
        lane149.read(hdr.lanes.v149, md.slot_copy);
        lane150.read(hdr.lanes.v150, md.slot_copy);
        lane151.read(hdr.lanes.v151, md.slot_copy);
        lane152.read(hdr.lanes.v152, md.slot_copy);
        lane153.read(hdr.lanes.v153, md.slot_copy);
        lane154.read(hdr.lanes.v154, md.slot_copy);
        lane155.read(hdr.lanes.v155, md.slot_copy);
        lane156.read(hdr.lanes.v156, md.slot_copy);
        lane157.read(hdr.lanes.v157, md.slot_copy);
        lane158.read(hdr.lanes.v158, md.slot_copy);
        lane159.read(hdr.lanes.v159, md.slot_copy);
        lane160.read(hdr.lanes.v160, md.slot_copy);
        lane161.read(hdr.lanes.v161, md.slot_copy);
        lane162.read(hdr.lanes.v162, md.slot_copy);
        lane163.read(hdr.lanes.v163, md.slot_copy);
        lane164.read(hdr.lanes.v164, md.slot_copy);
        lane165.read(hdr.lanes.v165, md.slot_copy);
        lane166.read(hdr.lanes.v166, md.slot_copy);
        lane167.read(hdr.lanes.v167, md.slot_copy);
        lane168.read(hdr.lanes.v168, md.slot_copy);
        lane169.read(hdr.lanes.v169, md.slot_copy);
        lane170.read(hdr.lanes.v170, md.slot_copy);
        lane171.read(hdr.lanes.v171, md.slot_copy);
        lane172.read(hdr.lanes.v172, md.slot_copy);
        lane173.read(hdr.lanes.v173, md.slot_copy);
        lane174.read(hdr.lanes.v174, md.slot_copy);
        lane175.read(hdr.lanes.v175, md.slot_copy);
        lane176.read(hdr.lanes.v176, md.slot_copy);
        lane177.read(hdr.lanes.v177, md.slot_copy);
        lane178.read(hdr.lanes.v178, md.slot_copy);
        lane179.read(hdr.lanes.v179, md.slot_copy);
        lane180.read(hdr.lanes.v180, md.slot_copy);
        lane181.read(hdr.lanes.v181, md.slot_copy);
        lane182.read(hdr.lanes.v182, md.slot_copy);
        lane183.read(hdr.lanes.v183, md.slot_copy);
        lane184.read(hdr.lanes.v184, md.slot_copy);
        lane185.read(hdr.lanes.v185, md.slot_copy);
        lane186.read(hdr.lanes.v186, md.slot_copy);
        lane187.read(hdr.lanes.v187, md.slot_copy);
        lane188.read(hdr.lanes.v188, md.slot_copy);
        lane189.read(hdr.lanes.v189, md.slot_copy);
        lane190.read(hdr.lanes.v190, md.slot_copy);
        lane191.read(hdr.lanes.v191, md.slot_copy);
        lane192.read(hdr.lanes.v192, md.slot_copy);
        lane193.read(hdr.lanes.v193, md.slot_copy);
        lane194.read(hdr.lanes.v194, md.slot_copy);
        lane195.read(hdr.lanes.v195, md.slot_copy);
        lane196.read(hdr.lanes.v196, md.slot_copy);
        lane197.read(hdr.lanes.v197, md.slot_copy);
        lane198.read(hdr.lanes.v198, md.slot_copy);
        lane199.read(hdr.lanes.v199, md.slot_copy);
        lane200.read(hdr.lanes.v200, md.slot_copy);
        lane201.read(hdr.lanes.v201, md.slot_copy);
        lane202.read(hdr.lanes.v202, md.slot_copy);
        lane203.read(hdr.lanes.v203, md.slot_copy);
        lane204.read(hdr.lanes.v204, md.slot_copy);
        lane205.read(hdr.lanes.v205, md.slot_copy);
        lane206.read(hdr.lanes.v206, md.slot_copy);
        lane207.read(hdr.lanes.v207, md.slot_copy);
        lane208.read(hdr.lanes.v208, md.slot_copy);
        lane209.read(hdr.lanes.v209, md.slot_copy);
        lane210.read(hdr.lanes.v210, md.slot_copy);
        lane211.read(hdr.lanes.v211, md.slot_copy);
        lane212.read(hdr.lanes.v212, md.slot_copy);
        lane213.read(hdr.lanes.v213, md.slot_copy);
        lane214.read(hdr.lanes.v214, md.slot_copy);
        lane215.read(hdr.lanes.v215, md.slot_copy);
        lane216.read(hdr.lanes.v216, md.slot_copy);
        lane217.read(hdr.lanes.v217, md.slot_copy);
        lane218.read(hdr.lanes.v218, md.slot_copy);
        lane219.read(hdr.lanes.v219, md.slot_copy);
        lane220.read(hdr.lanes.v220, md.slot_copy);
        lane221.read(hdr.lanes.v221, md.slot_copy);
        lane222.read(hdr.lanes.v222, md.slot_copy);
        lane223.read(hdr.lanes.v223, md.slot_copy);
        lane224.read(hdr.lanes.v224, md.slot_copy);
        lane225.read(hdr.lanes.v225, md.slot_copy);
        lane226.read(hdr.lanes.v226, md.slot_copy);
        lane227.read(hdr.lanes.v227, md.slot_copy);
        lane228.read(hdr.lanes.v228, md.slot_copy);
        lane229.read(hdr.lanes.v229, md.slot_copy);
        lane230.read(hdr.lanes.v230, md.slot_copy);
        lane231.read(hdr.lanes.v231, md.slot_copy);
        lane232.read(hdr.lanes.v232, md.slot_copy);
        lane233.read(hdr.lanes.v233, md.slot_copy);
        lane234.read(hdr.lanes.v234, md.slot_copy);
        lane235.read(hdr.lanes.v235, md.slot_copy);
        lane236.read(hdr.lanes.v236, md.slot_copy);
        lane237.read(hdr.lanes.v237, md.slot_copy);
        lane238.read(hdr.lanes.v238, md.slot_copy);
        lane239.read(hdr.lanes.v239, md.slot_copy);
        lane240.read(hdr.lanes.v240, md.slot_copy);
        lane241.read(hdr.lanes.v241, md.slot_copy);
        lane242.read(hdr.lanes.v242, md.slot_copy);
        lane243.read(hdr.lanes.v243, md.slot_copy);
        lane244.read(hdr.lanes.v244, md.slot_copy);
        lane245.read(hdr.lanes.v245, md.slot_copy);
        lane246.read(hdr.lanes.v246, md.slot_copy);
        lane247.read(hdr.lanes.v247, md.slot_copy);
        lane248.read(hdr.lanes.v248, md.slot_copy);
        lane249.read(hdr.lanes.v249, md.slot_copy);
        lane250.read(hdr.lanes.v250, md.slot_copy);
        lane251.read(hdr.lanes.v251, md.slot_copy);
        lane252.read(hdr.lanes.v252, md.slot_copy);
        lane253.read(hdr.lanes.v253, md.slot_copy);
        lane254.read(hdr.lanes.v254, md.slot_copy);
        lane255.read(hdr.lanes.v255, md.slot_copy);
        lane256.read(hdr.lanes.v256, md.slot_copy);
        lane257.read(hdr.lanes.v257, md.slot_copy);
        lane258.read(hdr.lanes.v258, md.slot_copy);
        lane259.read(hdr.lanes.v259, md.slot_copy);
        lane260.read(hdr.lanes.v260, md.slot_copy);
        lane261.read(hdr.lanes.v261, md.slot_copy);
        lane262.read(hdr.lanes.v262, md.slot_copy);
        lane263.read(hdr.lanes.v263, md.slot_copy);
        lane264.read(hdr.lanes.v264, md.slot_copy);
        lane265.read(hdr.lanes.v265, md.slot_copy);
        lane266.read(hdr.lanes.v266, md.slot_copy);
        lane267.read(hdr.lanes.v267, md.slot_copy);
        lane268.read(hdr.lanes.v268, md.slot_copy);
        lane269.read(hdr.lanes.v269, md.slot_copy);
        lane270.read(hdr.lanes.v270, md.slot_copy);
        lane271.read(hdr.lanes.v271, md.slot_copy);
        lane272.read(hdr.lanes.v272, md.slot_copy);
        lane273.read(hdr.lanes.v273, md.slot_copy);
        lane274.read(hdr.lanes.v274, md.slot_copy);
        lane275.read(hdr.lanes.v275, md.slot_copy);
        lane276.read(hdr.lanes.v276, md.slot_copy);
        lane277.read(hdr.lanes.v277, md.slot_copy);
        lane278.read(hdr.lanes.v278, md.slot_copy);
        lane279.read(hdr.lanes.v279, md.slot_copy);
        lane280.read(hdr.lanes.v280, md.slot_copy);
        lane281.read(hdr.lanes.v281, md.slot_copy);
        lane282.read(hdr.lanes.v282, md.slot_copy);
        lane283.read(hdr.lanes.v283, md.slot_copy);
        lane284.read(hdr.lanes.v284, md.slot_copy);
        lane285.read(hdr.lanes.v285, md.slot_copy);
        lane286.read(hdr.lanes.v286, md.slot_copy);
        lane287.read(hdr.lanes.v287, md.slot_copy);
        lane288.read(hdr.lanes.v288, md.slot_copy);
        lane289.read(hdr.lanes.v289, md.slot_copy);
        lane290.read(hdr.lanes.v290, md.slot_copy);
        lane291.read(hdr.lanes.v291, md.slot_copy);
        lane292.read(hdr.lanes.v292, md.slot_copy);
        lane293.read(hdr.lanes.v293, md.slot_copy);
        lane294.read(hdr.lanes.v294, md.slot_copy);
        lane295.read(hdr.lanes.v295, md.slot_copy);
        lane296.read(hdr.lanes.v296, md.slot_copy);
        lane297.read(hdr.lanes.v297, md.slot_copy);
        lane298.read(hdr.lanes.v298, md.slot_copy);
        lane299.read(hdr.lanes.v299, md.slot_copy);
        lane300.read(hdr.lanes.v300, md.slot_copy);
        lane301.read(hdr.lanes.v301, md.slot_copy);
        lane302.read(hdr.lanes.v302, md.slot_copy);
        lane303.read(hdr.lanes.v303, md.slot_copy);
        lane304.read(hdr.lanes.v304, md.slot_copy);
        lane305.read(hdr.lanes.v305, md.slot_copy);
        lane306.read(hdr.lanes.v306, md.slot_copy);
        lane307.read(hdr.lanes.v307, md.slot_copy);
        lane308.read(hdr.lanes.v308, md.slot_copy);
        lane309.read(hdr.lanes.v309, md.slot_copy);
        lane310.read(hdr.lanes.v310, md.slot_copy);
        lane311.read(hdr.lanes.v311, md.slot_copy);
        lane312.read(hdr.lanes.v312, md.slot_copy);
        lane313.read(hdr.lanes.v313, md.slot_copy);
        lane314.read(hdr.lanes.v314, md.slot_copy);
        lane315.read(hdr.lanes.v315, md.slot_copy);
        lane316.read(hdr.lanes.v316, md.slot_copy);
        lane317.read(hdr.lanes.v317, md.slot_copy);
        lane318.read(hdr.lanes.v318, md.slot_copy);
        lane319.read(hdr.lanes.v319, md.slot_copy);
        lane320.read(hdr.lanes.v320, md.slot_copy);
        lane321.read(hdr.lanes.v321, md.slot_copy);
        lane322.read(hdr.lanes.v322, md.slot_copy);
        lane323.read(hdr.lanes.v323, md.slot_copy);
        lane324.read(hdr.lanes.v324, md.slot_copy);
        lane325.read(hdr.lanes.v325, md.slot_copy);
        lane326.read(hdr.lanes.v326, md.slot_copy);
        lane327.read(hdr.lanes.v327, md.slot_copy);
        lane328.read(hdr.lanes.v328, md.slot_copy);
        lane329.read(hdr.lanes.v329, md.slot_copy);
        lane330.read(hdr.lanes.v330, md.slot_copy);
        lane331.read(hdr.lanes.v331, md.slot_copy);
        lane332.read(hdr.lanes.v332, md.slot_copy);
        lane333.read(hdr.lanes.v333, md.slot_copy);
        lane334.read(hdr.lanes.v334, md.slot_copy);
        lane335.read(hdr.lanes.v335, md.slot_copy);
        lane336.read(hdr.lanes.v336, md.slot_copy);
        lane337.read(hdr.lanes.v337, md.slot_copy);
        lane338.read(hdr.lanes.v338, md.slot_copy);
        lane339.read(hdr.lanes.v339, md.slot_copy);
        lane340.read(hdr.lanes.v340, md.slot_copy);
        lane341.read(hdr.lanes.v341, md.slot_copy);
        lane342.read(hdr.lanes.v342, md.slot_copy);
        lane343.read(hdr.lanes.v343, md.slot_copy);
        lane344.read(hdr.lanes.v344, md.slot_copy);
        lane345.read(hdr.lanes.v345, md.slot_copy);
        lane346.read(hdr.lanes.v346, md.slot_copy);
        lane347.read(hdr.lanes.v347, md.slot_copy);
        lane348.read(hdr.lanes.v348, md.slot_copy);
        lane349.read(hdr.lanes.v349, md.slot_copy);
        lane350.read(hdr.lanes.v350, md.slot_copy);
        lane351.read(hdr.lanes.v351, md.slot_copy);
    }

    apply {
        if (md.slot_access == SLOT_ACCESS_OVERWRITE) {
            lanes_overwrite();
        } else if (md.slot_access == SLOT_ACCESS_ADD) {
            lanes_add();
        } else if (md.slot_access == SLOT_ACCESS_MAX) {
            lanes_max();
        } else if (md.slot_access == SLOT_ACCESS_READ) {
            lanes_read();
        }
    }
}
